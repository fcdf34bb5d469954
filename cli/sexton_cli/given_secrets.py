"""Reads secrets that a command is given: from files and variables, never from the command line itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from sexton_cli.exits import USAGE, Fault

MAX_BYTES: Final = 64 * 1024
"""Far more than a credential may have."""
FORMS: Final = "Write @FILE or env:VARIABLE: others on this machine can read a command line."


def read_secret(source: str, environ: Mapping[str, str]) -> str:
    """The text of ``@FILE``, without the line end behind it, or of ``env:VARIABLE``. Raises Fault.

    >>> read_secret("env:TOKEN", {"TOKEN": "t-1"})
    't-1'
    """
    if source.startswith("@"):
        return _of_file(Path(source[1:]))
    if not source.startswith("env:"):
        raise Fault("a secret does not stand on the command line", FORMS, status=USAGE)
    name = source.removeprefix("env:")
    if not environ.get(name):
        raise Fault(f"the variable {name} is not set", f"Set it, or give another. {FORMS}", status=USAGE)
    return environ[name]


def _of_file(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as fault:
        raise Fault(f"{path}: {fault.strerror}", status=USAGE) from fault
    if len(raw) > MAX_BYTES:
        raise Fault(f"{path} has more than {MAX_BYTES} bytes", status=USAGE)
    try:
        secret = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        # Its text would quote the secret.
        raise Fault(f"{path} is not UTF-8", status=USAGE) from None
    if not secret:
        raise Fault(f"{path} is empty", status=USAGE)
    return secret


def read_credentials(words: Sequence[str], environ: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Credentials by name, from ``NAME.FIELD=SOURCE``, or ``NAME=SOURCE`` of a JSON object. Raises Fault.

    >>> read_credentials(["chat.token=env:T", "hook=env:H"], {"T": "t-1", "H": '{"webhook_secret": "s"}'})
    {'chat': {'token': 't-1'}, 'hook': {'webhook_secret': 's'}}
    """
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        place, equals, source = word.partition("=")
        name, _, field = place.partition(".")
        if not equals or not name:
            # What stands there may be the secret itself, so it is not quoted.
            way_out = f"Write NAME.FIELD=SOURCE, or NAME=SOURCE for a JSON object. {FORMS}"
            raise Fault("a credential has no name", way_out, status=USAGE)
        secret = read_secret(source, environ)
        found.setdefault(name, {}).update({field: secret} if field else _object(name, secret))
    return found


def _object(name: str, text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        way_out = f"Give a JSON object, or name the field: {name}.FIELD=SOURCE."
        raise Fault(f"what is given for {name} is not a JSON object", way_out, status=USAGE)
    return value
