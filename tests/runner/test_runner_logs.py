"""The lines of a log: whole, marked with time and level, free of secrets, whoever wrote them."""

import io
import logging
import sys
from collections.abc import Callable, Iterator

import orjson
import pytest
import structlog

from sexton_runner.__main__ import read_arguments
from sexton_runner.errors import BadSettings
from sexton_runner.logs import LogFormat, LogLevel, LogSettings, configure_logs
from tests.worlds.plain_logs import log_plainly

KEY = "zmb_t_" + 32 * "0a"
Written = Callable[[], str]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """All that was written to standard error until now."""
    stream = io.StringIO()

    def read() -> str:
        stream.write(capsys.readouterr().err)
        return stream.getvalue()

    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    root = logging.getLogger()
    handlers, level, raises = root.handlers[:], root.level, logging.raiseExceptions
    yield read
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raises
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    log_plainly()
    structlog.contextvars.clear_contextvars()


def fail(password: str = "never to be seen") -> None:
    raise ValueError(f"bad key {KEY}\nsecond line")


def test_both_libraries_write_the_same_lines_of_json(written: Written) -> None:
    configure_logs(LogSettings())
    structlog.contextvars.bind_contextvars(lease_id="l-1")
    structlog.get_logger("one").info("happened", number=3)
    logging.getLogger("two").warning("lost %s of\n%d", "one", 2, extra={"actor": "zombie"})
    first, second = (orjson.loads(line) for line in written().splitlines())
    assert first.pop("timestamp").endswith("Z")
    assert first == {"event": "happened", "level": "info", "logger": "one", "lease_id": "l-1", "number": 3}
    assert second.pop("timestamp").endswith("Z")

    second.pop("message", None)  # That the record was formatted by pytest's own handler before.
    assert second == {
        "event": "lost one of\n2",
        "level": "warning",
        "logger": "two",
        "lease_id": "l-1",
        "actor": "zombie",
    }


def test_an_exception_is_a_field_of_its_line_without_the_values_of_variables(written: Written) -> None:
    configure_logs(LogSettings(LogFormat.JSON))
    for log in (structlog.get_logger(), logging.getLogger("other")):
        try:
            fail()
        except ValueError:
            log.exception("broken")
    lines = [orjson.loads(line) for line in written().splitlines()]

    assert [line["event"] for line in lines] == ["broken", "broken"]
    assert all("ValueError: bad key zmb_t_...\nsecond line" in line["exception"] for line in lines)
    assert KEY not in written()
    assert "never to be seen" not in written()


def test_a_fault_that_ends_the_process_is_a_line_too(written: Written) -> None:
    configure_logs(LogSettings())
    try:
        fail()
    except ValueError as fault:
        sys.excepthook(type(fault), fault, fault.__traceback__)
    [line] = [orjson.loads(line) for line in written().splitlines()]

    assert (line["event"], line["level"]) == ("crashed", "critical")
    assert "ValueError" in line["exception"]


def test_a_console_shows_what_strangers_sent_on_one_line_and_exceptions_on_many(written: Written) -> None:
    configure_logs(LogSettings(LogFormat.CONSOLE))
    structlog.get_logger().info("request_refused", path="/a\n2030 [info] all is well\x1b[2J", token=KEY)
    [line] = written().splitlines()
    assert "\x1b" not in line
    assert "/a\N{SYMBOL FOR LINE FEED}2030" in line
    assert KEY not in line

    try:
        fail()
    except ValueError:
        structlog.get_logger().exception("broken")
    assert written().splitlines()[-1].startswith("second line")


def test_a_level_hides_what_is_less_and_talkative_libraries_are_held_back(written: Written) -> None:
    configure_logs(LogSettings(level=LogLevel.WARNING))
    structlog.get_logger().info("hidden")
    logging.getLogger("any").info("hidden")
    structlog.get_logger().warning("shown")
    configure_logs(LogSettings(level=LogLevel.INFO))
    logging.getLogger("httpx2").info("GET https://a.example/?token=x")

    assert [orjson.loads(line)["event"] for line in written().splitlines()] == ["shown"]


def test_configuring_again_writes_each_line_once(written: Written) -> None:
    for _ in range(3):
        configure_logs(LogSettings())
    logging.getLogger("any").warning("once")

    assert len(written().splitlines()) == 1


def test_a_runner_takes_its_log_settings_from_words_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--base-url", "http://127.0.0.1:1", "--state-dir", "x"]
    monkeypatch.setenv("SEXTON_LOG_LEVEL", "debug")
    assert read_arguments([*words, "--log-format", "console"]).log == LogSettings(
        LogFormat.CONSOLE, LogLevel.DEBUG
    )

    monkeypatch.setenv("SEXTON_LOG_LEVEL", "loud")
    with pytest.raises(BadSettings, match="SEXTON_LOG_LEVEL"):
        read_arguments(words)
