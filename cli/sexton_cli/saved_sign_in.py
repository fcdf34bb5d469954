"""Keeps a terminal signed in: makes its sign-in permanent, and renews its token."""

from typing import Final, NamedTuple

from sexton_cli.client import Client, field, open_client
from sexton_cli.exits import NO_PERMISSION, PROTOCOL, Fault
from sexton_cli.problems import Refused
from sexton_cli.tokens import Token, well_formed

SIGN_INS: Final = "/v1/auth/sign-ins"
TOKENS: Final = "/v1/auth/tokens"
ENDED: Final = "UZ-AUTH-002"


class SavedSignIn(NamedTuple):
    """A sign-in of this terminal at one server. ``refresh_token`` goes to that server alone."""

    sign_in_id: str
    refresh_token: str


def save_sign_in(base_url: str, token: Token, name: str) -> SavedSignIn | None:
    """Exchange a token that was approved for this terminal; None for any other token. Raises Fault."""
    claims = token.claims()
    if claims is None or claims.device is None:
        return None
    with open_client(base_url, token.value) as client:
        made = client.post(SIGN_INS, {"name": name})
    return SavedSignIn(field(made, "id", str), _checked(field(made, "refresh_token", str)))


def renew(base_url: str, refresh_token: str) -> str:
    """A fresh user token. Raises Fault, with the way out when the sign-in has ended."""
    with open_client(base_url, None) as client:
        try:
            return _checked(field(client.post(TOKENS, {"refresh_token": refresh_token}), "token", str))
        except Refused as refusal:
            if refusal.code != ENDED:
                raise
            raise Fault(
                f"the sign-in to {base_url} has ended",
                "Sign in again with 'sexton login'.",
                status=NO_PERMISSION,
                code=refusal.code,
                request_id=refusal.request_id,
            ) from refusal


def end(client: Client, sign_in_id: str) -> None:
    """Sign out there; its tokens end with it. Raises Fault."""
    client.delete(f"{SIGN_INS}/{sign_in_id}")


def _checked(value: str) -> str:
    if not well_formed(value):
        raise Fault("the server's answer is not a token", "Check the server's version.", status=PROTOCOL)
    return value
