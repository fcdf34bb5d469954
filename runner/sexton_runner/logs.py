"""Writes the log of a process: one line for each event, whichever library reports it."""

import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Final

import structlog
from structlog.typing import Processor

FORMAT_VARIABLE: Final = "SEXTON_LOG_FORMAT"
LEVEL_VARIABLE: Final = "SEXTON_LOG_LEVEL"
TALKATIVE: Final = ("asyncio", "httpcore2", "httpx2", "hypercorn", "pykka", "quart")
"""These tell each of their steps at ``info``, some with addresses that hold tokens."""
HANDLER: Final = "sexton"
CONTROL_PICTURES: Final = 0x2400
"""Where Unicode has a sign for each control character."""
MULTI_LINE: Final = frozenset({"exception", "stack"})

_SECRET: Final = re.compile(
    r"\b(zmb_[ta]_|zrn_|zre_|zap_|zwh_|whsec_|xox[a-z]-)[\w+/=-]{6,}|\b(eyJ)[\w-]+\.[\w-]+\.[\w-]+"
)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

Line = MutableMapping[str, Any]


class LogFormat(StrEnum):
    """``auto`` is ``console`` on a terminal, and ``json`` elsewhere."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What is written to standard error, and how."""

    format: LogFormat = LogFormat.AUTO
    level: LogLevel = LogLevel.INFO

    @property
    def options(self) -> tuple[str, ...]:
        """The words that have another process log alike."""
        return ("--log-format", self.format.value, "--log-level", self.level.value)


def read_log_settings(environ: Mapping[str, str]) -> LogSettings:
    """The settings that the environment gives. Raises ValueError for a word that is none of them.

    >>> read_log_settings({"SEXTON_LOG_LEVEL": "debug"}).level.value
    'debug'
    """
    return LogSettings(
        LogFormat(environ.get(FORMAT_VARIABLE) or LogFormat.AUTO),
        LogLevel(environ.get(LEVEL_VARIABLE) or LogLevel.INFO),
    )


def configure_logs(settings: LogSettings, context: Sequence[Processor] = ()) -> None:
    """Send the lines of structlog and of the standard library the same way, to standard error.

    ``context`` adds to each line what is known where it is written; what is bound by
    ``structlog.contextvars`` is there already.
    """
    on_terminal = sys.stderr.isatty()
    as_json = settings.format is LogFormat.JSON or (settings.format is LogFormat.AUTO and not on_terminal)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        *context,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            # Texts of exceptions and not their frames: the values of variables are nobody's to read.
            structlog.processors.format_exc_info,
            mask_secrets,
            *_renderers(as_json=as_json, colours=on_terminal and not os.environ.get("NO_COLOR")),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(HANDLER)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [*(other for other in root.handlers if other.get_name() != HANDLER), handler]
    root.setLevel(level)
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(level if level == logging.DEBUG else logging.WARNING)
    # Who reads the log may be gone, or the disk full: that is no reason to say so there.
    logging.raiseExceptions = False
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _crashed


def mask_secrets(_logger: object, _method: str, line: Line) -> Line:
    """Hide tokens, whoever wrote them.

    >>> mask_secrets(None, "", {"event": "lost zrn_0123456789", "faults": ["zap_abcdefgh"]})
    {'event': 'lost zrn_...', 'faults': ['zap_...']}
    """
    for name, value in line.items():
        line[name] = _masked(value)
    return line


def _masked(value: Any) -> Any:
    match value:
        case str():
            return _SECRET.sub(lambda found: f"{found[1] or found[2]}...", value)
        case list():
            return [_masked(item) for item in value]
        case _:
            return value


def _renderers(*, as_json: bool, colours: bool) -> list[Processor]:
    if as_json:
        return [structlog.processors.JSONRenderer(sort_keys=False)]
    plain = structlog.dev.plain_traceback
    return [_on_one_line, structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=plain)]


def _on_one_line(_logger: object, _method: str, line: Line) -> Line:
    # What a stranger sends may be in a line: it must neither look like another nor steer the terminal.
    for name, value in line.items():
        if isinstance(value, str) and name not in MULTI_LINE:
            line[name] = _CONTROL.sub(_picture, value)
    return line


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(CONTROL_PICTURES + code) if code < ord(" ") else "\N{REPLACEMENT CHARACTER}"


def _crashed(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    if isinstance(fault, KeyboardInterrupt):
        sys.__excepthook__(kind, fault, trace)
        return
    logging.getLogger("sexton").critical("crashed", exc_info=(kind, fault, trace))
