"""Validates the arguments of a call against the schema of its tool."""

from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match

from sexton_runner.output import shallow

MAX_MESSAGE_CHARS = 512


class BadArguments(Exception):
    """The arguments do not fit; the text tells the model what is wrong."""


class Checked:
    """One tool's schema, compiled. A schema that is none, as a server elsewhere may send, admits objects."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError:
            schema = {"type": "object"}
        self._validator = Draft202012Validator(schema)

    def check(self, arguments: Any) -> None:
        """Raise ``BadArguments`` unless they fit.

        >>> Checked({"type": "object", "required": ["url"]}).check({})
        Traceback (most recent call last):
        ...
        sexton_runner.tools.arguments.BadArguments: 'url' is a required property
        """
        if not shallow(arguments):
            raise BadArguments("the arguments are nested too deep")
        try:
            fault = best_match(self._validator.iter_errors(arguments))
        except Exception as broken:
            # A schema from elsewhere may refer to what cannot be resolved; its server checks for itself.
            raise BadArguments(f"the tool's schema cannot be used: {broken}"[:MAX_MESSAGE_CHARS]) from broken
        if fault is not None:
            where = "".join(f"/{step}" for step in fault.absolute_path)
            raise BadArguments(f"{where + ': ' if where else ''}{fault.message}"[:MAX_MESSAGE_CHARS])


def an_object(required: list[str], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Spell the schema of an object without further members."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
