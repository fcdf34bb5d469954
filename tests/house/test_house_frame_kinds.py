"""The kinds of frames stand in one list, which documents, runners and pages keep to."""

import ast
import re

from sexton_runner.frames import SPARE_KINDS
from sexton_storage.records.frame_kinds import QUIET_KINDS, RUN_KINDS, FrameKind
from tests.house.survey import ROOT, relative, tree, wing_modules

WORDS_OF_HTTP = {FrameKind.CONNECTION, FrameKind.CHUNK}
"""These words mean other things elsewhere."""
RUNNER = ROOT / "runner" / "sexton_runner"
STREAMED = re.compile(r"^\| Kind \| Says \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_control_plane_names_kinds_by_the_list() -> None:
    spelled = {kind for kind in FrameKind if kind not in WORDS_OF_HTTP}
    found = [
        f"{relative(path)}:{node.lineno}: {node.value}"
        for path in wing_modules()
        if relative(path).split("/")[0] in {"storage", "actors", "http"} and path.name != "frame_kinds.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in spelled
    ]

    assert found == [], "write FrameKind.…"


def test_the_reference_tells_of_each_kind() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")
    [table] = STREAMED.findall(page)
    named = [kind for row in table.splitlines() for kind in re.findall(r"`(\w+)`", row.split("|")[1])]

    assert sorted(named) == sorted(FrameKind)


def test_a_runner_sends_the_kinds_that_it_may() -> None:
    sent = {
        value.value
        for path in RUNNER.rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "kind" and isinstance(value, ast.Constant)
    } & set(FrameKind)

    assert sent <= RUN_KINDS
    assert frozenset(QUIET_KINDS) == SPARE_KINDS, "what a runner may leave out, and what changes no page"
