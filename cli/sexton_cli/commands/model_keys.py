"""``sexton provider`` and ``sexton platform-key``: by which model and on whose key a tenant's runs work."""

from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.lookups import segment, workspace_path
from sexton_cli.output import Column

CHOICE: Final = "/v1/tenants/me/provider"
KEYS: Final = "/v1/admin/platform-keys"
COLUMNS: Final = (
    Column("provider", "PROVIDER"),
    Column("source_workspace_id", "KEY OF WORKSPACE"),
    Column("lent", "LENT TO"),
)


@noun()
def provider() -> None:
    """Show, choose and clear the model and the key that your tenant's runs use."""


@provider.command()
@calling
def show(caller: Caller) -> None:
    """Show what runs use where nothing nearer to them says otherwise."""
    with caller.client() as client:
        _tell(caller, client.get(CHOICE))


@provider.command("set")
@click.argument("mode", type=click.Choice(["platform", "self_managed"]))
@click.option("--model", help="The model. [default: the credential's, or the provider's first]")
@click.option("--provider", "name", help="Its provider. [default: the model's, or the credential's]")
@click.option("--credential", help="The credential with the key, for self_managed.")
@click.option("--context", type=click.IntRange(1024), metavar="TOKENS", help="What the model can hold.")
@calling
def set_(
    caller: Caller,
    *,
    mode: str,
    model: str | None,
    name: str | None,
    credential: str | None,
    context: int | None,
) -> None:
    """Choose the platform's key, or one of your own (MODE self_managed) from a credential."""
    given: dict[str, Any] = {
        "mode": mode,
        "model": model,
        "provider": name,
        "credential_ref": credential,
        "context_cap_tokens": context,
    }
    with caller.client() as client:
        _tell(caller, client.put(CHOICE, {key: value for key, value in given.items() if value is not None}))


@provider.command()
@calling
def clear(caller: Caller) -> None:
    """Choose nothing: runs use what their workspace or the platform has."""
    with caller.client() as client:
        _tell(caller, client.delete(CHOICE))


@noun("platform-key")
def platform_key() -> None:
    """List, set and delete whose model keys are lent to the whole tenant; for admins."""


@platform_key.command("list")
@calling
def list_keys(caller: Caller) -> None:
    """List for which providers a workspace's vault lends its key."""
    with caller.client() as client:
        found = client.get(KEYS)
    caller.output.listing(found, COLUMNS, [_shown(row) for row in rows(found, {"provider": str})])


@platform_key.command("show")
@click.argument("provider")
@calling
def show_key(caller: Caller, *, provider: str) -> None:
    """Show whose key of a PROVIDER is lent."""
    with caller.client() as client:
        _tell_key(caller, client.get(f"{KEYS}/{segment(provider)}"))


@platform_key.command("set")
@click.argument("provider")
@calling
def set_key(caller: Caller, *, provider: str) -> None:
    """Lend the workspace's own key of a PROVIDER to the tenant; a platform admin's serves all tenants."""
    with caller.client() as client:
        body = {"source_workspace_id": _workspace_id(caller, client)}
        _tell_key(caller, client.put(f"{KEYS}/{segment(provider)}", body))


@platform_key.command("delete")
@click.argument("provider")
@calling
def delete_key(caller: Caller, *, provider: str) -> None:
    """Lend the key of a PROVIDER no more."""
    with caller.client() as client:
        client.delete(f"{KEYS}/{segment(provider)}")
    caller.output.thing({"provider": provider, "deleted": True}, f"The key of {provider} is lent no more.")


def _workspace_id(caller: Caller, client: Client) -> str:
    return workspace_path(caller, client).rpartition("/")[2]


def _tell(caller: Caller, found: Row) -> None:
    caller.output.thing(
        found,
        {
            "mode": field(found, "mode", str),
            "provider": found.get("provider"),
            "model": found.get("model"),
            "context": found.get("context_cap_tokens"),
            "credential": found.get("credential_ref"),
        },
    )


def _tell_key(caller: Caller, found: Row) -> None:
    shown = _shown(found)
    caller.output.thing(
        found,
        {
            "provider": found.get("provider"),
            "key of workspace": found.get("source_workspace_id"),
            "lent to": shown["lent"],
        },
    )


def _shown(row: Row) -> Row:
    return {**row, "lent": "all tenants" if row.get("shared") else "this tenant"}
