"""``sexton trigger``: sends an agent a signed sample of what its sources send."""

import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec
import trio

from sexton_actors.manifest.model import WebhookTrigger
from sexton_actors.secrets import Secrets
from sexton_actors.webhooks.trigger_secrets import SECRET_FIELD, secrets_of
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.data_folder import DATA_VARIABLE, default_data
from sexton_cli.exits import CONFIG, FAILED, PROTOCOL, USAGE, Fault, StartupFault, first_of
from sexton_cli.given_secrets import read_secret
from sexton_cli.lookups import agent_path
from sexton_cli.node_storage import visit_storage
from sexton_cli.settings import DATABASE_VARIABLE
from sexton_cli.webhook_samples import Delivery, Stamp, address_of, sample_of, signed
from sexton_storage.startup import StartupFailed
from sexton_storage.vault import KEY_FILE, KEY_VARIABLE, VaultError, open_vault

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, exists=True, path_type=Path)
MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""More than a server takes, so that it is the server that says so."""
NOT_SIGNED: Final = "UZ-WH-010"
WOKEN: Final = frozenset({"accepted", "duplicate"})


@command()
@click.argument("source", metavar="SOURCE[:TYPE]")
@click.option("--agent", required=True, metavar="NAME", type=AGENT_WORD, help="The agent's name or id.")
@click.option("--data", type=FILE, help="Send these very bytes, and not a sample of ours.")
@click.option(
    "--secret",
    metavar="PLACE",
    help="Where the signing secret is: @FILE or env:VARIABLE. [default: the vault, see below]",
)
@click.option("--url", metavar="URL", help="The address of a source that does not sign: it holds the secret.")
@click.option(
    "--server-data", type=FOLDER, envvar=DATA_VARIABLE, help="Folder of the server's state, for its vault."
)
@click.option("--database-url", envvar=DATABASE_VARIABLE, help="The server's PostgreSQL, if it is your own.")
@calling
def trigger(
    caller: Caller,
    *,
    source: str,
    agent: str,
    data: Path | None,
    secret: str | None,
    url: str | None,
    server_data: Path | None,
    database_url: str | None,
) -> None:
    """Send an AGENT a delivery of SOURCE, signed as its sender signs, and say what the answer was.

    TYPE is the event as TRIGGER.md names it, such as github:issues.opened; without it, the first of the
    trigger's events. The bodies of github, slack, linear, stripe, sentry, svix and standard-webhooks look
    like the sender's own; any other source gets an envelope with event_id, type and data.

    No route gives a signing secret out. On the server's own machine it is taken from the vault, which only
    who runs the server can open; elsewhere give it with --secret.
    """
    label, _, event_type = source.partition(":")
    given = None if secret is None else read_secret(secret, os.environ)
    body = None if data is None else _bytes_of(data)
    with caller.client() as client:
        path = agent_path(caller, client, agent)
        wanted = _trigger_of(client.get(path), label)
        workspace_id, zombie_id = path.split("/")[3], path.split("/")[5]
        stamp = Stamp(str(uuid.uuid4()), int(time.time()))
        made = sample_of(wanted, event_type or None, body, stamp)
        if wanted.signature is None and url is None:
            way_out = "Give the whole address with --url; it was shown when the agent was installed."
            raise Fault(f"{label} does not sign: its address holds the secret", way_out, status=USAGE)
        if wanted.signature is not None and given is None:
            reference = wanted.signature.secret_ref
            given = _from_vault(server_data or default_data(), database_url, workspace_id, reference)
        place = address_of(zombie_id, wanted) if url is None else urlsplit(url).path
        delivery = signed(wanted, made, given, stamp)
        _tell(caller, made, _sent(client, place, delivery))


def _sent(client: Client, place: str, delivery: Delivery) -> Row:
    """What the server says to it. Raises Fault; of a refusal for its signature with where to look next."""
    try:
        return client.deliver(place, delivery.body, delivery.headers)
    except Fault as fault:
        if fault.code == NOT_SIGNED and not fault.way_out:
            fault.way_out = "Refused deliveries are kept: 'sexton webhook deliveries' lists them."
        raise


def _trigger_of(record: Row, label: str) -> WebhookTrigger:
    """The agent's webhook trigger of this source. Raises Fault."""
    rows: Sequence[Any] = record.get("triggers") or ()
    hooks = [row for row in rows if isinstance(row, dict) and row.get("type") == "webhook"]
    found = next((row for row in hooks if row.get("source") == label), None)
    if found is None:
        sources = ", ".join(str(row.get("source")) for row in hooks) or "none"
        way_out = f"Its webhook sources: {sources}."
        raise Fault(f"agent {record.get('name')} has no trigger of source {label!r}", way_out, status=USAGE)
    try:
        return msgspec.convert(found, WebhookTrigger)
    except msgspec.ValidationError as fault:
        what = f"the answer's trigger cannot be read: {fault}"
        raise Fault(what, "Check the server's version.", status=PROTOCOL) from fault


def _tell(caller: Caller, made: Delivery, answer: Row) -> None:
    """Say what the server said. Raises Fault where nobody was woken."""
    said, event_id = answer.get("status"), answer.get("event_id")
    if caller.output.as_json:
        caller.output.document({"event_type": made.event_type, **answer})
    elif said in WOKEN:
        caller.output.note(f"{made.event_type}, {len(made.body)} bytes: {said}.")
        caller.output.say(str(event_id))
    if said not in WOKEN:
        why = answer.get("reason") or said
        way_out = "The trigger's `events` say what it wakes for; 'sexton agent show' shows them."
        raise Fault(f"{made.event_type} woke nobody: {why}", way_out, status=FAILED)


def _bytes_of(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BODY_BYTES)
    except OSError as fault:
        raise Fault(f"{file}: {fault.strerror}", status=USAGE) from fault


# --- the secret ---------------------------------------------------------------------------------------------


def _from_vault(data: Path, database_url: str | None, workspace_id: str, name: str) -> str:
    """The newest signing secret that the server of this machine keeps. Raises Fault."""
    way_out = "Give the secret with --secret @FILE, or run this where the server is, with its --server-data."
    if not (data / KEY_FILE).exists() and not os.environ.get(KEY_VARIABLE):
        raise Fault(
            f"the vault is not on this machine: there is no {data / KEY_FILE}", way_out, status=CONFIG
        )
    try:
        kept = trio.run(_open, data, database_url, uuid.UUID(workspace_id), name)
    except* StartupFault as group:
        raise first_of(group) from None
    if not kept:
        what = f"the vault has no {SECRET_FIELD} in a credential {name!r}"
        raise Fault(
            what, f"Keep one with 'sexton credentials set {name} --field {SECRET_FIELD}'.", status=FAILED
        )
    return kept[-1]


async def _open(data: Path, database_url: str | None, workspace_id: uuid.UUID, name: str) -> list[str]:
    async with visit_storage(data, database_url) as storage:
        try:
            secrets = Secrets(storage.credentials, open_vault(data, os.environ), storage.clock)
            held = await secrets.open(workspace_id, name)
        except (StartupFailed, VaultError) as fault:
            what = f"the vault of {data} does not open: {fault}"
            raise StartupFault(
                "UZ-STARTUP-002", what, "Give the server's own --server-data", CONFIG
            ) from fault
    return [] if held is None else secrets_of(held)
