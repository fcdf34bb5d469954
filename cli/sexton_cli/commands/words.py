"""The words of a command line that name a thing on a server, which shells complete with live names."""

from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import CompletionItem


class LiveWord(click.ParamType[str]):
    """A name or an id; ``kind`` says of what. It is completed with what the server has now."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Take it as it stands."""
        del param, ctx
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Give the names that there are now; it imports the client, so only here."""
        del param
        known: list[CompletionItem] = import_module("sexton_cli.live_names").begin_with(
            ctx, self.kind, incomplete
        )
        return known


AGENT_WORD: Final = LiveWord("agent")
WORKSPACE_WORD: Final = LiveWord("workspace")
EVENT_WORD: Final = LiveWord("event")
APPROVAL_WORD: Final = LiveWord("approval")
JOB_WORD: Final = LiveWord("job")
