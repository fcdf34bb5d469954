"""``sexton login``: gets a token, sees that it is good, and keeps it."""

import os
import re
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import click

from sexton_cli.addresses import in_the_open
from sexton_cli.browser import find_browser
from sexton_cli.caller import Caller, ask_line
from sexton_cli.client import Client, field, open_client
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.whoami import show
from sexton_cli.credentials import Kept
from sexton_cli.exits import FAILED, PROTOCOL, USAGE, Fault, printable
from sexton_cli.identity import Identity, identify, workspace_in_use
from sexton_cli.problems import Refused
from sexton_cli.saved_sign_in import renew, save_sign_in
from sexton_cli.sealed_token import NotForUs, TokenReceiver
from sexton_cli.tokens import Token, well_formed

SESSIONS: Final = "/v1/auth/sessions"
MAX_WRONG: Final = 5
MAX_PROMPTS: Final = 20
CODE: Final = re.compile(r"[0-9]{6}")
NAME_CHARS: Final = 64
WRONG_CODE: Final = "UZ-AUTH-011"
NOT_YET: Final = "UZ-AUTH-014"

Ask = Callable[[str], str | None]
"""Asks a person for one line; None when there is nobody any more."""
Note = Callable[[str], None]


@command()
@click.option("--name", help="What the approval page calls this terminal. [default: from the host's name]")
@click.option("--no-browser", is_flag=True, help="Only print the address of the approval page.")
@calling
def login(caller: Caller, *, name: str | None, no_browser: bool) -> None:
    """Sign in, and keep the token for later commands.

    In a terminal this opens the server's approval page and asks for the six digits that it shows. Such a
    sign-in renews itself until 'sexton logout', or until nobody used it for 30 days. A token that you have
    already is taken from --token, from SEXTON_TOKEN or from standard input, in this order.
    """
    token, saved = caller.given_token(piped=True), None
    if token is None:
        with open_client(caller.base_url, None) as client:
            opener = None if no_browser else find_browser(os.environ)
            value = sign_in(client, token_name(name), opener, _asker(caller), caller.output.note)
        token = Token(value, "the approval page")
        saved = save_sign_in(caller.base_url, token, token_name(name))
        if saved is not None:
            # The one that was approved is thrown away: it alone could make another sign-in.
            token = Token(renew(caller.base_url, saved.refresh_token), token.source)
    with open_client(caller.base_url, token.value) as client:
        identity = identify(client, token)
    workspace_id = _workspace(identity, caller)
    kept = Kept(token.value, workspace_id, *(saved or ()))
    caller.keep(lambda _: kept)
    if in_the_open(caller.base_url):
        caller.output.note(
            f"sexton: {caller.base_url} is not encrypted: others can read the token on the way"
        )
    caller.output.note(f"Signed in to {caller.base_url}.")
    show(caller, token, identity)


def sign_in(client: Client, name: str, opener: Callable[[str], None] | None, ask: Ask, note: Note) -> str:
    """Get a token by way of a browser, in which somebody is signed in. Raises Fault."""
    receiver = TokenReceiver()
    session = client.post(SESSIONS, {"public_key": receiver.public_key, "token_name": name})
    url = printable(field(session, "login_url", str))
    note(f"Approve this terminal in your browser: {url}")
    # Only what a browser can show: the address is the server's word, and would be a program's argument.
    if opener is not None and url.startswith(("https://", "http://")):
        opener(url)
    path = f"{SESSIONS}/{field(session, 'session_id', str)}"
    try:
        sealed = _verify(client, f"{path}/verify", ask, note)
    except BaseException:
        # Nobody waits any more, so nobody else may take the token.
        with suppress(Fault):
            client.delete(path)
        raise
    try:
        token = receiver.open(
            **{part: field(sealed, part, str) for part in ("dashboard_public_key", "ciphertext", "nonce")}
        )
    except NotForUs as fault:
        raise Fault(
            f"the token cannot be opened: {fault}",
            "It may have been tampered with; sign in again.",
            status=PROTOCOL,
        ) from fault
    if not well_formed(token):
        raise Fault("what arrived is not a token", "Sign in again.", status=PROTOCOL)
    return token


def _verify(client: Client, path: str, ask: Ask, note: Note) -> dict[str, object]:
    wrong = 0
    for _ in range(MAX_PROMPTS):
        code = ask("Code shown there (6 digits): ")
        if code is None:
            break
        if not CODE.fullmatch(code):
            note("The code is six digits.")
            continue
        try:
            return client.post(path, {"verification_code": code})
        except Refused as refusal:
            if refusal.code == NOT_YET:
                note("The terminal is not approved yet; the page shows the code when it is.")
                continue
            wrong += 1
            if refusal.code != WRONG_CODE or wrong == MAX_WRONG:
                raise
            note(f"That is not the code on the page ({refusal.code}); {MAX_WRONG - wrong} tries are left.")
    raise Fault("no code was given", "Begin again with 'sexton login'.", status=FAILED)


def token_name(given: str | None) -> str:
    """What the token may be called, from the host's name when nobody gives one."""
    if given is not None:
        return given
    return f"cli-{re.sub(r'[^A-Za-z0-9_-]', '-', socket.gethostname())}"[:NAME_CHARS]


def _asker(caller: Caller) -> Ask:
    if not caller.interactive:
        raise Fault("there is no terminal to ask for the code", status=USAGE)
    return lambda prompt: ask_line(sys.stdin, prompt)


def _workspace(identity: Identity, caller: Caller) -> str | None:
    """The one that was asked for or chosen before; else the only one."""
    given, kept = caller.given_workspace, caller.kept.workspace_id
    row = workspace_in_use(identity.workspaces, given=given, kept=kept)
    if row is None and len(identity.workspaces) == 1:
        row = identity.workspaces[0]
    return None if row is None else str(row["workspace_id"])
