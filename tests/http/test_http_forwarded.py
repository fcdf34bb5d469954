"""Behind proxies that are trusted, limits by address are those of the clients; nobody chooses his own."""

from typing import Any

import pytest

from sexton_http.wire.forwarded import forwarded_scope, read_networks
from tests.worlds.http import open_http_world

OURS = read_networks(["10.0.0.0/8", "127.0.0.1"])
LISTED, STANDARD = b"x-forwarded-for", b"forwarded"


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("10.0.0.1", {LISTED: b"203.0.113.9"}, "203.0.113.9"),
        ("10.0.0.1", {STANDARD: b"for=203.0.113.9;proto=https"}, "203.0.113.9"),
        ("10.0.0.1", {STANDARD: b'for="[2001:db8::1]:4711", for=10.0.0.2'}, "2001:db8::1"),
        ("10.0.0.1", {LISTED: b"203.0.113.9", STANDARD: b"For=203.0.113.9"}, "203.0.113.9"),
        # One of the two is the sender's own, and passed through the proxy as it came.
        ("10.0.0.1", {LISTED: b"203.0.113.9", STANDARD: b"for=198.51.100.1"}, "10.0.0.1"),
        ("10.0.0.1", {STANDARD: b"for=198.51.100.1, for=203.0.113.9"}, "203.0.113.9"),
        ("10.0.0.1", {STANDARD: b"for=unknown"}, "10.0.0.1"),
        ("10.0.0.1", {STANDARD: b"proto=https;by=10.0.0.1"}, "10.0.0.1"),
        ("10.0.0.1", {STANDARD: b'for="203.0.113.9'}, "10.0.0.1"),
        ("10.0.0.1", {STANDARD: b'x=";for=198.51.100.1 , for=203.0.113.9'}, "10.0.0.1"),
        ("203.0.113.7", {STANDARD: b"for=198.51.100.1"}, "203.0.113.7"),
        ("203.0.113.7", {LISTED: b"198.51.100.1"}, "203.0.113.7"),
    ],
)
def test_the_client_is_the_last_whom_a_trusted_proxy_names(
    peer: str, headers: dict[bytes, bytes], client: str
) -> None:
    scope: dict[str, Any] = {"client": (peer, 1), "headers": list(headers.items())}

    assert forwarded_scope(scope, OURS)["client"][0] == client


@pytest.mark.parametrize("header", ["x-forwarded-for", "forwarded"])
async def test_each_client_behind_a_proxy_has_a_limit_of_his_own(header: str) -> None:
    async def left(address: str) -> str:
        told = f"for={address}" if header == "forwarded" else address
        return (await world.get("/nowhere", None, headers={header: told})).headers["ratelimit"]

    async with open_http_world(trusted_proxies=OURS, address_rate=10) as world:
        first = await left("203.0.113.1")
        again = await left("203.0.113.1")
        other = await left("203.0.113.2")

    assert first.split(";")[1] == other.split(";")[1] == "r=19"
    assert again.split(";")[1] == "r=18"
