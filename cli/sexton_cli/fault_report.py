"""Tells a person or a script why a command could not go on."""

import sys

import orjson

from sexton_cli.exits import Fault


def explain(fault: Fault, *, as_json: bool = False) -> int:
    """Print the line, on standard error, and give the exit status."""
    text = orjson.dumps(fault.document()).decode() if as_json else f"sexton: {fault.line()}"
    sys.stderr.write(f"{text}\n")
    return fault.status
