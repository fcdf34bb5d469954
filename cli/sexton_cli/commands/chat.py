"""``sexton chat``: the Slack channel in which a workspace's approvals are asked for."""

from typing import Final

from sexton_cli.caller import Caller
from sexton_cli.client import field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.lookups import workspace_path
from sexton_cli.output import moment

SLACK: Final = "chat/slack"


@noun()
def chat() -> None:
    """Show, install, test and remove the Slack channel that is asked for approvals."""


@chat.command()
@calling
def show(caller: Caller) -> None:
    """Show where the workspace's approvals are asked for."""
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/{SLACK}")
    if not field(found, "installed", bool):
        caller.output.thing(found, "No chat is installed; 'sexton chat install' says how.")
        return
    caller.output.thing(
        found,
        {
            "team": found.get("team_name"),
            "channel": found.get("channel_name"),
            "installed by": found.get("installed_by"),
            "since": moment(found.get("created_at")),
            "refused since": moment(found.get("revoked_at")),
        },
    )


@chat.command()
@calling
def install(caller: Caller) -> None:
    """Print the address to open in a browser, where the bot is allowed and its channel is chosen."""
    with caller.client() as client:
        url = f"{caller.base_url}{workspace_path(caller, client)}/{SLACK}/install"
    caller.output.thing({"url": url}, url)


@chat.command()
@calling
def test(caller: Caller) -> None:
    """Ask Slack whether the bot's token is still good."""
    with caller.client() as client:
        found = client.post(f"{workspace_path(caller, client)}/{SLACK}/test", {})
    caller.output.thing(found, {"team": found.get("team_name"), "bot": found.get("bot_user_id")})


@chat.command()
@calling
def uninstall(caller: Caller) -> None:
    """Give the bot's token back and forget it."""
    with caller.client() as client:
        client.delete(f"{workspace_path(caller, client)}/{SLACK}")
    caller.output.thing({"installed": False}, "The chat is not installed any more.")
