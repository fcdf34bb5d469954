"""``sexton webhook verify``: says whether a delivery that was kept as files is genuine, and if not, why."""

import base64
from pathlib import Path

import click

from sexton_cli.caller import Caller
from sexton_cli.client import field
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.lookups import agent_path

FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


@command()
@click.argument("agent", type=AGENT_WORD)
@click.option(
    "--body", "file", type=FILE, help="The body as it was sent, byte by byte. [default: an empty one]"
)
@click.option(
    "--header", "headers", metavar="NAME=VALUE", multiple=True, help="One of its headers; repeat it."
)
@click.option("--source", help="The trigger's source. [default: the agent's first webhook trigger]")
@click.option(
    "--received-at", type=click.IntRange(0), metavar="MS", help="When it came, in Unix ms. [default: now]"
)
@calling
def verify(
    caller: Caller,
    *,
    agent: str,
    file: Path | None,
    headers: tuple[str, ...],
    source: str | None,
    received_at: int | None,
) -> None:
    """Say what would become of a delivery to an AGENT, without waking it; fails unless it is good."""
    raw = b"" if file is None else file.read_bytes()
    body = {
        "headers": dict(_pair(text) for text in headers),
        "body_base64": base64.b64encode(raw).decode(),
        "source": source,
        "received_at": received_at,
    }
    with caller.client() as client:
        path = f"{agent_path(caller, client, agent)}/webhooks:verify"
        found = client.post(path, {name: value for name, value in body.items() if value is not None})
    caller.output.thing(
        found,
        {
            "source": found.get("source"),
            "outcome": found.get("outcome"),
            "signature": "good" if found.get("signature_ok") else "not good",
            "event type": found.get("event_type"),
            "code": found.get("error_code"),
            "detail": found.get("detail") or None,
        },
    )
    if not field(found, "ok", bool):
        hints = " ".join(map(str, found.get("hints") or ()))
        raise Fault(f"it would be refused: {found.get('detail')}", hints, status=FAILED)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise Fault(f"--header {text!r} is not NAME=VALUE", status=USAGE)
    return name, value
