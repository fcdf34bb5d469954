"""``sexton whoami`` and ``sexton logout``."""

import click

from sexton_cli.caller import Caller
from sexton_cli.client import open_client
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.credentials import Credentials
from sexton_cli.exits import Fault
from sexton_cli.identity import Identity, identify, workspace_in_use
from sexton_cli.output import moment
from sexton_cli.saved_sign_in import end, renew
from sexton_cli.tokens import API_KEY, Token

API_KEY_KIND = "api_key"


@command()
@calling
def whoami(caller: Caller) -> None:
    """Ask the server whom it takes you for, and what you may do."""
    with caller.client() as client:
        identity = identify(client, caller.token)
    show(caller, caller.token, identity)


def show(caller: Caller, token: Token, identity: Identity) -> None:
    """Who it is, on which server, in which workspace."""
    workspace = workspace_in_use(
        identity.workspaces, given=caller.given_workspace, kept=caller.kept.workspace_id
    )
    document = {
        "base_url": caller.base_url,
        **identity.document(),
        "token": token.hint,
        "token_source": token.source,
        "workspace": workspace and {"id": workspace["workspace_id"], "name": workspace["name"]},
        "workspaces": len(identity.workspaces),
    }
    if caller.output.as_json:
        caller.output.document(document)
        return
    used = f"{workspace['name']} ({workspace['workspace_id']})" if workspace else "none in use"
    caller.output.facts(
        {
            "server": caller.base_url,
            "caller": f"{'API key ' if identity.kind == API_KEY_KIND else ''}{identity.name}",
            "role": identity.role,
            "platform admin": identity.platform_admin or None,
            "tenant": identity.tenant_id,
            "workspace": f"{used}, {len(identity.workspaces)} in all",
            "token": f"{token.hint}, from {token.source}",
            "expires": moment(identity.expires_at_ms),
        }
    )


@command()
@click.option("--all", "everywhere", is_flag=True, help="Of all servers.")
@calling
def logout(caller: Caller, *, everywhere: bool) -> None:
    """Sign out of a server, and forget the token that is kept for it.

    An API key stays valid: 'sexton keys revoke' ends it. A user token that was given to 'sexton login' ends
    by itself within minutes.
    """
    gone: list[str] = []
    had_key = False
    for url in list(caller.credentials.servers) if everywhere else [caller.base_url]:
        _end_there(caller, url)

    def forget(credentials: Credentials) -> Credentials:
        nonlocal had_key
        for url in list(credentials.servers) if everywhere else [caller.base_url]:
            token = credentials.of(url).token
            if token is not None:
                gone.append(url)
                had_key |= token.startswith(API_KEY)
            credentials = credentials.without(url)
        return credentials

    caller.file.change(forget)
    if caller.output.as_json:
        caller.output.document({"signed_out": gone})
        return
    for url in gone:
        caller.output.say(f"Signed out of {url}.")
    if not gone:
        caller.output.say("There was nothing to forget.")
    if had_key:
        caller.output.note("The key itself is still valid; 'sexton keys revoke' ends it.")


def _end_there(caller: Caller, url: str) -> None:
    """End the lasting sign-in at this server. If that fails it is said, and forgotten here all the same."""
    kept = caller.credentials.of(url)
    if kept.sign_in_id is None or kept.refresh_token is None:
        return
    try:
        with open_client(url, renew(url, kept.refresh_token)) as client:
            end(client, kept.sign_in_id)
    except Fault as fault:
        caller.output.note(f"sexton: the sign-in at {url} may last until it is ended there: {fault.line()}")
