"""Records examples for the OpenAPI document: what the tests' own requests were answered with.

``SEXTON_EXAMPLES=FILE pytest tests/http`` writes each exchange as a line of FILE (with an empty
``examples.json`` where shapes have changed);
``python -m tests.worlds.example_recorder FILE`` chooses from them and writes
``http/sexton_http/describe/examples.json``.
"""

import os
import sys
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec

from sexton_http.gateway.operations import Operation
from sexton_http.routes.table import OPERATIONS

KEPT: Final = Path(__file__).resolve().parents[2] / "http" / "sexton_http" / "describe" / "examples.json"
FILE: Final = os.environ.get("SEXTON_EXAMPLES")
ENOUGH_BYTES: Final = 280
"""The largest example up to this is shown; where all are larger, the smallest."""
MAX_BYTES: Final = 3500


def record(operation: Operation, answer: httpx2.Response) -> None:
    """One success with JSON; nothing where nobody asks for it."""
    if FILE is None or operation.name == "openapi":
        return
    sent = answer.request.content
    line = {
        "name": operation.name,
        "status": str(answer.status_code),
        "request": msgspec.json.decode(sent) if sent and operation.has_body else None,
        "answer": msgspec.json.decode(answer.content) if answer.content else None,
    }
    with Path(FILE).open("ab") as kept:
        kept.write(msgspec.json.encode(line) + b"\n")


def choose(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """For each route and status the richest exchange that is still short."""
    chosen: dict[str, Any] = {}
    for row in sorted(OPERATIONS, key=lambda one: one.name):
        for status in (row.status, *row.extra_statuses):
            mine = [one for one in lines if (one["name"], one["status"]) == (row.name, str(status))]
            mine = [one for one in mine if size(one) <= MAX_BYTES]
            if not mine:
                continue
            short = [one for one in mine if size(one) <= ENOUGH_BYTES]
            best = max(short, key=size) if short else min(mine, key=size)
            entry = chosen.setdefault(row.name, {})
            if best["request"] is not None:
                entry.setdefault("request", best["request"])
            if best["answer"] is not None:
                entry.setdefault("answers", {})[str(status)] = best["answer"]
    return {name: entry for name, entry in chosen.items() if entry}


def size(line: dict[str, Any]) -> int:
    return len(msgspec.json.encode([line["request"], line["answer"]]))


if __name__ == "__main__":
    found = [msgspec.json.decode(line) for line in Path(sys.argv[1]).read_bytes().splitlines()]
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(choose(found)), indent=1) + b"\n")
