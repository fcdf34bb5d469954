"""Everything that is logged is on the page about logs, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.house.survey import ROOT, WINGS

PAGE = ROOT / "docs" / "reference" / "logs.md"
LOGGERS = {"log", "logger"}
MAKERS = {"getLogger", "get_logger"}
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
PLACE = re.compile(r"%[-.0-9]*[a-z]")
ROW = re.compile(r"^\| `([^`]+)` \| `(\w+)` \| .+ \|$", re.MULTILINE)


class Told(NamedTuple):
    """What is logged, at which level; what is put in is `…`."""

    event: str
    level: str


def is_logger(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name in LOGGERS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in MAKERS
        case _:
            return False


def told(source: str) -> Iterator[Told]:
    """What a module logs: a constant, or one of two."""
    for call in ast.walk(ast.parse(source)):
        match call:
            case ast.Call(func=ast.Attribute(value=logger, attr=level), args=[event, *_]) if (
                level in LEVELS and is_logger(logger)
            ):
                texts = [one.value for one in ast.walk(event) if isinstance(one, ast.Constant)]
                assert texts, f"what is logged is no constant: {ast.unparse(call)}"
                for text in texts:
                    yield Told(PLACE.sub("…", str(text)), "error" if level == "exception" else level)


def test_the_reader_of_log_lines_finds_what_is_logged() -> None:
    source = """
log.info("done", of=1)
logging.getLogger("x").critical("fell %s after %.1f s", name, s)
logger.exception("broken")
log.bind(a=1)
metrics.info("not a log line")
"""

    assert list(told(source)) == [
        ("done", "info"),
        ("fell … after … s", "critical"),
        ("broken", "error"),
    ]


def test_every_line_of_the_log_is_on_its_page_and_no_other() -> None:
    paths = [path for wing in WINGS for path in (ROOT / wing).rglob("*.py")]
    in_code = {line for path in paths for line in told(path.read_text(encoding="utf-8"))}
    on_page = {Told(*row) for row in ROW.findall(PAGE.read_text(encoding="utf-8")) if row[1] in LEVELS}

    assert sorted(in_code - on_page) == [], "logged, and not on the page"
    assert sorted(on_page - in_code) == [], "on the page, and not logged"
