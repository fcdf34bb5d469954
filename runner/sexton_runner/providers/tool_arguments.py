"""Reads the arguments of a tool call, which arrive in pieces."""

import orjson

from sexton_runner.output import MAX_DEPTH, shallow
from sexton_runner.providers.base import ToolUse

MAX_ARGUMENTS_CHARS = 1 << 20


def read_arguments(call_id: str, name: str, text: str) -> ToolUse:
    """Read the arguments of a tool use, which a model spells and may spell wrong.

    >>> read_arguments("1", "shell", '{"command": "ls"}')
    ToolUse(id='1', name='shell', arguments={'command': 'ls'}, fault='')
    >>> read_arguments("1", "shell", "{").fault
    'the arguments are no JSON object'
    """
    if len(text) > MAX_ARGUMENTS_CHARS:
        return ToolUse(call_id, name, {}, f"the arguments have more than {MAX_ARGUMENTS_CHARS} characters")
    if not text.strip():
        return ToolUse(call_id, name)  # A tool without parameters: nothing needs to be said.
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        return ToolUse(call_id, name, {}, "the arguments are no JSON object")
    if not shallow(found):
        return ToolUse(call_id, name, {}, f"the arguments are nested deeper than {MAX_DEPTH}")
    return ToolUse(call_id, name, found)
