"""Hands over the secrets of new agents, which a server shows once: to a person or a file, never to a log."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sexton_cli.declared.steps import Made
from sexton_cli.exits import FAILED, Fault
from sexton_cli.output import Output

NOT_SHOWN = (
    "New agents have approval tokens and secret addresses, which were not shown here. Give --secrets-file to"
    " have them written down; 'sexton agent show NAME' says how to make new ones."
)


def write_made(output: Output, made: Sequence[Made], path: Path | None) -> None:
    """Raises Fault where the file cannot be written."""
    if path is not None:
        _write(path, made)
        output.note(f"The secrets of {len(made)} agents are in {path}.")
    elif sys.stdout.isatty() and not output.as_json:
        output.note("What follows is shown this once; keep it in a safe place.")
        for one in made:
            urls = {f"webhook {source}": url for source, url in one.webhook_urls.items()}
            output.facts({"agent": one.agent, "approval token": one.approval_token, **urls})
    else:
        output.note(NOT_SHOWN)


def _write(path: Path, made: Sequence[Made]) -> None:
    """Add a line of JSON for each agent; what earlier runs have written stays."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for one in made:
                file.write(msgspec.json.encode(one) + b"\n")
    except OSError as fault:
        raise Fault(f"{path}: {fault.strerror}; the secrets of new agents are lost", status=FAILED) from fault
