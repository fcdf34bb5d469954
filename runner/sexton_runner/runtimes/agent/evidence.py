"""Records what a run has done: each call, its arguments and its result, by their hashes."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from sexton_runner.output import MAX_EVIDENCE_BYTES
from sexton_runner.tools.base import ToolResult

MAX_CALLS = 256
MAX_FACTS_BYTES = 2_048


def fingerprint(value: object) -> str:
    """Give the SHA-256 of a value's canonical JSON, or of a text's bytes.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    data = value.encode() if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(data).hexdigest()


class Evidence:
    """The calls of one run, in the order in which they ended."""

    def __init__(self) -> None:
        self._calls: list[dict[str, Any]] = []
        self._left_out = 0
        self.count = 0

    def add(self, name: str, arguments: Mapping[str, Any], result: ToolResult, ms: int) -> None:
        """Take a call; of too many the oldest are only counted. Everything given here is redacted."""
        self.count += 1
        facts = dict(result.facts)
        self._calls.append(
            {
                "tool": name,
                "arguments_sha256": fingerprint(dict(arguments)),
                "ok": result.ok,
                "ms": ms,
                "result_sha256": fingerprint(result.content),
                "facts": facts if len(orjson.dumps(facts)) <= MAX_FACTS_BYTES else {"left_out": True},
            }
        )
        if len(self._calls) > MAX_CALLS:
            self._drop()

    def told(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Give all of it, within the bound on evidence; ``about`` says what kind of run it was."""
        while len(orjson.dumps(self._spelt(about))) > MAX_EVIDENCE_BYTES and self._calls:
            self._drop()
        return self._spelt(about)

    def _drop(self) -> None:
        del self._calls[0]
        self._left_out += 1

    def _spelt(self, about: Mapping[str, Any]) -> dict[str, Any]:
        left_out = {"tools_left_out": self._left_out} if self._left_out else {}
        return {**about, "tools": list(self._calls), **left_out}
