"""``sexton credentials``: puts secrets into the vault, which never gives them back."""

import getpass
import sys
from pathlib import Path
from typing import Any

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.commands import credential_grants
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.exits import USAGE, Fault
from sexton_cli.lookups import segment, walk, workspace_path
from sexton_cli.output import Column, moment

FILE = click.Path(dir_okay=False, allow_dash=True, path_type=Path)
MAX_BYTES = 64 * 1024
"""Far more than a credential may have; the server tells its bound."""
CREDENTIAL = {"name": str}
COLUMNS = (
    Column("name", "NAME", elastic=True),
    Column("created", "CREATED", spare=True),
    Column("updated", "CHANGED"),
)


@noun()
def credentials() -> None:
    """List, set, delete and lend the workspace's credentials, and keep the key of its model provider."""


credentials.add_command(credential_grants.grants)


@credentials.command("list")
@calling
def list_(caller: Caller) -> None:
    """List names and times; what is kept is never shown."""
    with caller.client() as client:
        found = list(walk(client, f"{workspace_path(caller, client)}/credentials", {}, CREDENTIAL))
    if caller.output.as_json:
        caller.output.document({"items": found, "total": len(found)})
        return
    shown = [
        {**row, "created": moment(row.get("created_at")), "updated": moment(row.get("updated_at"))}
        for row in found
    ]
    caller.output.table(COLUMNS, shown)


@credentials.command("set")
@click.argument("name")
@click.option(
    "--field",
    "key",
    metavar="KEY",
    help="Keep one secret under this key, such as webhook_secret. Without it, give a JSON object.",
)
@click.option("--file", type=FILE, help="Read the secret from there; - is standard input.")
@click.option(
    "--host", "hosts", metavar="HOST", multiple=True, help="Where runs may send it; may be given again."
)
@click.option(
    "--use",
    "uses",
    metavar="PLACE",
    multiple=True,
    help="Where in a request it stands: header:NAME, query:NAME or basic; may be given again."
    " Without it, in the header authorization and as the password of basic authentication.",
)
@calling
def set_(
    caller: Caller,
    *,
    name: str,
    key: str | None,
    file: Path | None,
    hosts: tuple[str, ...],
    uses: tuple[str, ...],
) -> None:
    """Keep a credential of this NAME, in place of one that is there.

    The secret comes from --file, from standard input, or, in a terminal, from a question that does not show
    what is typed. It never stands on the command line, which others on the machine can read.
    """
    given = _secret(caller, f"{key or 'JSON object'}: ", file)
    data = {key: given} if key else _object(given)
    with caller.client() as client:
        body: dict[str, Any] = {"name": name, "data": data, "hosts": hosts}
        if uses:  # An older server knows no such field.
            body["use"] = [_use(text) for text in uses]
        kept = client.post(f"{workspace_path(caller, client)}/credentials", body)
    if caller.output.as_json:
        caller.output.document(kept)
        return
    caller.output.say(f"Keeping credential {name}.")


@credentials.command()
@click.argument("name")
@calling
def delete(caller: Caller, *, name: str) -> None:
    """Forget the credential of this NAME."""
    with caller.client() as client:
        client.delete(f"{workspace_path(caller, client)}/credentials/{segment(name)}")
    if caller.output.as_json:
        caller.output.document({"name": name, "deleted": True})
        return
    caller.output.say(f"Forgot credential {name}.")


# --- the key of the model provider --------------------------------------------------------------------------


@credentials.group()
def llm() -> None:
    """Show, set and delete the workspace's own key of a model provider."""


@llm.command()
@calling
def show(caller: Caller) -> None:
    """Say which provider the workspace has a key of."""
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/credentials/llm")
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts({"provider": found.get("provider"), "has a key": found.get("has_key")})


@llm.command("set")
@click.argument("provider")
@click.option("--file", type=FILE, help="Read the key from there; - is standard input.")
@calling
def set_llm(caller: Caller, *, provider: str, file: Path | None) -> None:
    """Keep the key of a PROVIDER; it comes from --file, standard input or a question."""
    key = _secret(caller, f"key of {provider}: ", file)
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/credentials/llm"
        client.put(path, {"provider": provider, "api_key": key})
    if caller.output.as_json:
        caller.output.document({"provider": provider, "has_key": True})
        return
    caller.output.say(f"Keeping the key of {provider}.")


@llm.command("delete")
@calling
def delete_llm(caller: Caller) -> None:
    """Forget the key of the model provider."""
    with caller.client() as client:
        client.delete(f"{workspace_path(caller, client)}/credentials/llm")
    if caller.output.as_json:
        caller.output.document({"has_key": False})
        return
    caller.output.say("Forgot the key of the model provider.")


# --- where secrets come from --------------------------------------------------------------------------------


def _secret(caller: Caller, prompt: str, file: Path | None) -> str:
    """One secret, without the line end that files and pipes put behind it. Raises Fault."""
    if file is not None and str(file) != "-":
        try:
            with file.open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
        except OSError as fault:
            raise Fault(f"{file}: {fault.strerror}", status=USAGE) from fault
    elif file is None and caller.interactive:
        raw = getpass.getpass(prompt, stream=sys.stderr).encode()
    else:
        raw = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Fault(f"the secret has more than {MAX_BYTES} bytes", status=USAGE)
    try:
        secret = raw.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        # Its text would quote the secret.
        raise Fault("the secret is not UTF-8", status=USAGE) from None
    if not secret:
        raise Fault("there is no secret", "Give one on standard input or with --file.", status=USAGE)
    return secret


def _use(text: str) -> dict[str, str]:
    place, _, name = text.partition(":")
    return {"in": place, "name": name} if name else {"in": place}


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        way_out = "Give a JSON object, or say with --field under which key a single secret belongs."
        raise Fault("the input is not a JSON object", way_out, status=USAGE)
    return value
