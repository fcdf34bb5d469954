"""``sexton model``: lists the models of the server, and asks the one of the workspace."""

import sys
from typing import Any

import click
import msgspec

from sexton_cli.caller import Caller
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import MODEL
from sexton_cli.exchange import Response
from sexton_cli.exits import FAILED, PROTOCOL, USAGE, Fault
from sexton_cli.lookups import workspace_path
from sexton_cli.problems import read_problem

OK = 200


@noun(late=MODEL)
def model() -> None:
    """List the models that the server offers, and ask the one that runs of the workspace use."""


@model.command()
@click.argument("message", required=False)
@click.option("--system", help="What the model is told before.")
@calling
def preview(caller: Caller, *, message: str | None, system: str | None) -> None:
    """Ask the workspace's model a MESSAGE, and show what it says as it says it; no event is made.

    Without MESSAGE it is read from standard input. On the platform's key it costs the tenant's credit.
    """
    text = sys.stdin.read() if message is None else message
    if not text.strip():
        raise Fault("there is no message", "Give one, or write it to standard input.", status=USAGE)
    before = [] if system is None else [{"role": "system", "content": system}]
    body = {"messages": [*before, {"role": "user", "content": text}]}
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/spec/preview"
        with client.opened(path, msgspec.json.encode(body), {}) as response:
            if response.status_code != OK:
                raise read_problem(caller.base_url, response.status_code, response.read())
            ended = _tell(caller, response)
    caller.output.thing(ended, f"\n{ended.get('provider')} {ended.get('model')}")


def _tell(caller: Caller, response: Response) -> dict[str, Any]:
    """Say what comes; what the last frame says, with all of the text. Raises Fault."""
    said: list[str] = []
    kind = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        kind = value if name == "event" else kind
        if name != "data":
            continue
        data: dict[str, Any] = msgspec.json.decode(value)
        if kind == "text_delta":
            said.append(str(data.get("text")))
            if not caller.output.as_json:
                caller.output.piece(said[-1])
        elif kind == "error":
            raise Fault(str(data.get("message")), status=FAILED, code=data.get("code"))
        elif kind == "done":
            return {**data, "text": "".join(said)}
    raise Fault("the answer ended before the model had", "Try again.", status=PROTOCOL)
