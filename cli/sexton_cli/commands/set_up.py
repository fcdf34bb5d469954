"""``sexton models`` and ``sexton settings``: what a server offers, and how it was set up."""

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.output import Column, dollars

MODELS = (
    Column("id", "MODEL", elastic=True),
    Column("provider", "PROVIDER"),
    Column("context_cap_tokens", "CONTEXT", spare=True),
    Column("input", "INPUT $/M"),
    Column("output", "OUTPUT $/M"),
)
SETTINGS = (
    Column("name", "OPTION"),
    Column("value", "VALUE", elastic=True),
    Column("source", "FROM"),
    Column("variable", "VARIABLE", spare=True),
)


@command()
@calling
def models(caller: Caller) -> None:
    """List the models that the server offers, and what a million of their tokens costs."""
    with caller.client() as client:
        found = client.get("/v1/models")
    if caller.output.as_json:
        caller.output.document(found)
        return
    rows = found.get("items") or []
    shown = [
        {
            **row,
            "input": dollars(row.get("input_nanos_per_mtok")),
            "output": dollars(row.get("output_nanos_per_mtok")),
        }
        for row in rows
    ]
    caller.output.table(MODELS, shown)


@command()
@calling
def settings(caller: Caller) -> None:
    """List the options that the server was started with, and where each comes from; for platform admins."""
    with caller.client() as client:
        found = client.get("/v1/admin/settings")
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.table(SETTINGS, found.get("items") or [])
