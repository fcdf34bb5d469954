"""The egress proxy lets through what the policy allows, with credentials in their own place."""

import base64
from pathlib import Path

import pytest
import trio
import trio.testing

from sexton_runner.egress import tunnels
from sexton_runner.egress.seen import Answer, Verdict
from tests.patience import PATIENCE_S
from tests.worlds.egress import (
    BOUND,
    PASSWORD,
    PLACEHOLDER,
    QUERY,
    SECRET,
    head,
    open_egress,
    read_reply,
    send,
)

ALL = (BOUND, PASSWORD, QUERY)


async def test_what_is_allowed_arrives_and_all_else_is_refused_with_a_reason(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world:
        answer = await world.get("plain.example", "/a?b=c", "X-One: 1")
        refused = await world.get("shut.example", "/")

    assert (answer.status, answer.body.splitlines()[0]) == (200, b"GET /a?b=c")
    assert b"x-one: 1" in answer.body.lower()
    assert refused.problem()["detail"].startswith("the host shut.example is not in network.allow.")
    assert world.looked_up == ["plain.example"], "what is refused is not even looked up"
    assert [(one.verdict, one.host, one.path) for one in world.seen] == [
        (Verdict.ALLOWED, "plain.example", "/a"),
        (Verdict.REFUSED, "shut.example", "/"),
    ]


async def test_a_refused_tunnel_says_why(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world:
        stream, reply = await world.tunnel("elsewhere.example:443")
        await stream.aclose()

    assert (reply.status, reply.problem()["reason"]) == (403, "host")


async def test_tls_passes_through_untouched_where_nothing_is_put_in(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        stream = await world.tls("open.example")
        async with stream:
            issuer = dict(pair[0] for pair in stream.getpeercert()["issuer"])
            await send(stream, head("GET", "/x", "any.example", f"Authorization: Bearer {PLACEHOLDER}"))
            answer = await read_reply(stream)

    assert issuer["commonName"] == "servers of the tests"
    assert f"authorization: Bearer {PLACEHOLDER}".encode() in answer.body
    assert [(one.method, one.verdict, one.address) for one in world.seen] == [
        ("CONNECT", Verdict.ALLOWED, "127.0.0.1")
    ]


@pytest.mark.parametrize(
    ("path", "sent", "heard"),
    [
        ("/", f"Authorization: token {PLACEHOLDER}", f"Authorization: token {SECRET}"),
        ("/", f"X-Other: {PLACEHOLDER}", f"X-Other: {PLACEHOLDER}"),
        (
            "/",
            "Authorization: Basic " + base64.b64encode(f"x:{PLACEHOLDER}".encode()).decode(),
            "Authorization: Basic " + base64.b64encode(f"x:{SECRET}".encode()).decode(),
        ),
        (
            f"/?key={PLACEHOLDER}&other={PLACEHOLDER}",
            "Accept: */*",
            f"GET /?key={SECRET}&other={PLACEHOLDER} ",
        ),
    ],
)
async def test_a_credential_goes_out_in_its_own_place_only(
    tmp_path: Path, path: str, sent: str, heard: str
) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        answer = await world.get_tls("bound.example", path, sent)

    assert answer.status == 200
    assert heard.encode() in world.origins["bound.example"].text
    assert SECRET.encode() not in answer.body
    assert SECRET not in repr(world.seen)


async def test_a_request_that_no_rule_allows_is_refused_within_the_tls(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world:
        allowed = await world.get_tls("ruled.example", "/docs/a/../b")
        path = await world.get_tls("ruled.example", "/docs/../admin")
        method = await world.get_tls("ruled.example", "/docs", method="POST", body=b"x")

    assert allowed.body.startswith(b"GET /docs/b\n"), "what was judged is what is sent"
    assert (path.problem()["reason"], method.problem()["reason"]) == ("path", "method")
    assert world.origins["ruled.example"].connections == 1


async def test_a_tunnel_to_port_80_carries_tls_as_it_is_and_http_as_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_egress(tmp_path) as world:
        monkeypatch.setattr(tunnels, "HTTP_PORT", world.port("open.example"))
        secure = await world.get_tls("open.example", "/")
        monkeypatch.setattr(tunnels, "HTTP_PORT", world.port("plain.example"))
        stream, _ = await world.tunnel(world.authority("plain.example"))
        async with stream:
            await send(stream, head("GET", "/", world.authority("plain.example")))
            plain = await read_reply(stream)
            await send(stream, head("GET", "/", "shut.example"))
            other = await read_reply(stream)

    assert (secure.status, plain.status, other.problem()["reason"]) == (200, 200, "host_header")
    assert [one.method for one in world.seen] == ["CONNECT", "GET", ""]


async def test_a_gate_sees_each_request_with_what_it_would_send(tmp_path: Path) -> None:
    async with open_egress(tmp_path, inspects=True) as world:
        allowed = await world.get_tls("open.example", "/a?secret=1", method="POST", body=b"hello")
        world.answer = Answer(allowed=False, why="not on a Friday")
        denied = await world.get_tls("open.example", "/b")

    assert allowed.body.endswith(b"\n\nhello")
    assert denied.problem()["detail"].startswith("not on a Friday")
    assert [(one.method, one.path, (one.body_sha256 or "")[:8]) for one in world.asked] == [
        ("POST", "/a", "2cf24dba"),
        ("GET", "/b", ""),
    ]


async def test_one_connection_carries_many_requests_and_large_bodies(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        stream = await world.tls("bound.example")
        came_back = []
        async with stream:
            for number in range(3):
                body = bytes([65 + number]) * 300_000
                await send(
                    stream,
                    head(
                        "POST",
                        "/",
                        f"bound.example:{world.port('bound.example')}",
                        "Expect: 100-continue",
                        body=body,
                    ),
                )
                came_back.append((await read_reply(stream)).body.endswith(body))

    assert came_back == [True] * 3
    assert world.origins["bound.example"].connections == 1
    assert [one.bytes_out > 300_000 for one in world.seen] == [True] * 3


async def test_a_server_that_the_system_does_not_trust_is_not_talked_to(tmp_path: Path) -> None:
    async with open_egress(tmp_path, bindings=ALL) as world:
        (tmp_path / "roots.pem").write_bytes(world.proxy.ca_pem if world.proxy else b"")
        answer = await world.get_tls("bound.example", "/", f"Authorization: {PLACEHOLDER}")

    assert (answer.status, answer.problem()["reason"]) == (502, "certificate")
    assert world.origins["bound.example"].text == b""


async def test_the_end_of_the_run_ends_its_connections(tmp_path: Path) -> None:
    async with open_egress(tmp_path) as world:
        stream = await world.tls("open.example")
        await trio.testing.wait_all_tasks_blocked()
    async with stream:
        with trio.fail_after(PATIENCE_S):
            rest = await stream.receive_some(1)

    assert rest == b""
    assert [(one.host, one.why) for one in world.seen] == [("open.example", "the run ended")]
