"""Where a run's requests may go, and what of its secrets comes back: nothing."""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, strategies as st

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.redact import MASK, Redactor, forms
from sexton_runner.tool_settings import ToolSettings
from sexton_runner.tools.addresses import forbidden, host_allowed
from sexton_runner.tools.base import ToolResult
from tests.worlds.certificates import make_certificate
from tests.worlds.toolbox import Bench, Seen, Web, open_bench, open_web

TOKEN = "tok-Canary+/=?&0123456789"
SECRETS = {"hub": {"token": TOKEN, "user": "deploy-bot-user"}}
ALLOW = {
    "network_policy": {"allow": ["localhost", "*.example.test"]},
    "secrets_map": SECRETS,
    "secret_hosts": {"hub": ["localhost"]},
}


async def ask(bench: Bench, **arguments: Any) -> ToolResult:
    return await bench.box.call("http_request", arguments, "c1")


async def test_a_request_is_made_as_it_was_asked_for(tmp_path: Path) -> None:
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(
            bench, url=f"{web.url}/a?b=c", method="POST", headers={"X-Kind": "k"}, json={"n": [1]}
        )
    (seen,) = web.seen

    assert (seen.method, seen.target, seen.body) == ("POST", "/a?b=c", b'{"n":[1]}')
    assert seen.headers["x-kind"] == "k"
    assert seen.headers["host"] == f"localhost:{web.port}"
    assert result.ok
    assert result.facts["status"] == 200
    assert '{"n":[1]}' in result.content


async def test_secrets_go_out_and_do_not_come_back(tmp_path: Path) -> None:
    place = "${secrets.hub.token}"
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(
            bench,
            url=f"{web.url}/{place}",
            method="POST",
            headers={"authorization": f"Bearer {place}"},
            json={"token": place, "list": [f"x{place}x"]},
        )
        basic = await ask(bench, url=web.url, basic_auth="${secrets.hub.user}:" + place)
        await bench.run.shown()
        stream = str(bench.plane.frames())
    first, second = web.seen
    assert first.headers["authorization"] == f"Bearer {TOKEN}"
    assert first.body == b'{"token":"%b","list":["x%bx"]}' % (TOKEN.encode(), TOKEN.encode())
    assert base64.b64decode(second.headers["authorization"].split()[1]).decode() == f"deploy-bot-user:{TOKEN}"

    for text in (result.content, basic.content, str(result.facts), stream):
        assert not any(form in text for form in forms(TOKEN))
    assert MASK in result.content
    assert result.facts["url"] == f"{web.url}/{place}"


@pytest.mark.parametrize("place", ["${secrets.hub.none}", "${secrets.other.token}"])
async def test_a_secret_that_was_not_lent_is_refused_before_anything_goes_out(
    tmp_path: Path, place: str
) -> None:
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url, headers={"authorization": place})

    assert web.seen == []
    assert not result.ok
    assert "hub.token" in result.content


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://example.com/", "not in network.allow"),
        ("http://example.test/", "not in network.allow"),
        ("http://notlocalhost/", "not in network.allow"),
        ("http://localhost.evil.test/", "not in network.allow"),
        ("http://localhost@evil.test/", "not belong into a url"),
        ("http://[::1]/", "not in network.allow"),
        ("ftp://localhost/", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("localhost", "http:// or https://"),
        ("http://", "http:// or https://"),
        ("http://localhost:99999/", "cannot be read"),
        ("http://a.example.test/", "cannot be found"),
    ],
)
async def test_a_request_to_elsewhere_is_refused(tmp_path: Path, url: str, why: str) -> None:
    async with open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=url)

    assert not result.ok
    assert why in result.content


async def test_loopback_is_refused_unless_the_operator_allows_it(tmp_path: Path) -> None:
    settings = ToolSettings(allow_loopback=False)
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW, settings=settings) as bench:
        result = await ask(bench, url=web.url)

    assert web.seen == []
    assert "a loopback address" in result.content


@pytest.mark.parametrize(
    ("named", "other_port", "why"),
    [("localhost", 0, ""), ("localhost:{port}", 0, ""), ("localhost:{port}", 1, "a loopback address")],
)
async def test_a_private_host_is_reached_by_the_name_and_port_that_the_operator_gave(
    tmp_path: Path, named: str, other_port: int, why: str
) -> None:
    async with open_web() as web:
        egress = EgressSettings(private_hosts=frozenset({named.format(port=web.port + other_port)}))
        async with open_bench(tmp_path, policy=ALLOW, settings=ToolSettings(), egress=egress) as bench:
            result = await ask(bench, url=web.url)

    assert (len(web.seen), result.ok) == (0 if why else 1, not why)
    assert why in result.content


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_server_is_trusted_by_the_bundle_of_the_operator(tmp_path: Path, is_named: bool) -> None:
    tls = make_certificate(tmp_path, "localhost")
    egress = EgressSettings(ca_bundle=tls.certificate if is_named else None)
    async with open_web(tls=tls) as web, open_bench(tmp_path, policy=ALLOW, egress=egress) as bench:
        result = await ask(bench, url=web.url, headers={"authorization": "Bearer ${secrets.hub.token}"})

    assert (len(web.seen), result.ok) == (int(is_named), is_named)
    assert is_named or "the certificate of localhost is not trusted: self" in result.content


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1",
        "::ffff:169.254.169.254", "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::a83f:8110",
        "169.254.170.2", "169.254.42.42", "169.254.0.23", "100.100.100.200", "192.0.0.192", "fd00:ec2::254",
        "fd20:ce::254", "fd00:42::42", "fe80::a9fe:a9fe",
        "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::7f00:1", "198.18.0.1", "192.0.2.1", "fec0::1", "junk",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_closed(address: str) -> None:
    assert forbidden(address) is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses_are_open(address: str) -> None:
    assert forbidden(address) is None


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("api.example.test", True),
        ("a.b.example.test", True),
        ("example.test", False),
        ("xexample.test", False),
    ],
)
def test_a_star_stands_for_what_is_below_a_host(host: str, allowed: bool) -> None:
    assert host_allowed(host, ["*.example.test"]) is allowed


class Names:
    """A resolver that gives one answer after the other, as one that rebinds a name does."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def getaddrinfo(self, host: Any, port: Any, *_: Any, **__: Any) -> Any:
        self.asked += 1
        found = self.answers[min(self.asked, len(self.answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


async def resolving(names: Names, work: Any) -> None:
    class Resolver(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host: Any, port: Any, *_: Any, **__: Any) -> Any:
            return await names.getaddrinfo(host, port)

        async def getnameinfo(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    before = trio.socket.set_custom_hostname_resolver(Resolver())
    try:
        await work()
    finally:
        trio.socket.set_custom_hostname_resolver(before)


async def test_a_name_that_is_rebound_is_looked_up_once(tmp_path: Path) -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"])
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:

        async def work() -> None:
            result = await ask(bench, url=f"http://api.example.test:{web.port}/")
            assert result.ok, result.content

        await resolving(names, work)

    assert names.asked == 1
    assert web.seen[0].headers["host"] == f"api.example.test:{web.port}"


@pytest.mark.parametrize("addresses", [["169.254.169.254"], ["8.8.8.8", "10.0.0.1"], []])
async def test_a_name_with_one_closed_address_is_refused(tmp_path: Path, addresses: list[str]) -> None:
    async with open_bench(tmp_path, policy=ALLOW) as bench:

        async def work() -> None:
            result = await ask(bench, url="http://api.example.test/")
            assert not result.ok

        await resolving(Names(addresses), work)


def redirecting(to: str, status: int = 302) -> Any:
    def respond(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        if seen.target == "/start":
            return status, {"location": to}, b""
        return 200, {}, f"{seen.method} {seen.headers.get('authorization')} {seen.body.decode()}".encode()

    return respond


async def redirected(tmp_path: Path, respond: Any, **arguments: Any) -> tuple[Web, ToolResult]:
    async with open_web(respond) as web, open_bench(tmp_path, policy=ALLOW) as bench:
        return web, await ask(bench, **{"url": f"{web.url}/start", **arguments})


async def test_a_redirect_on_the_same_host_is_followed(tmp_path: Path) -> None:
    headers = {"authorization": "Bearer ${secrets.hub.token}"}
    web, result = await redirected(tmp_path, redirecting("/next"), headers=headers)

    assert [seen.target for seen in web.seen] == ["/start", "/next"]
    assert web.seen[1].headers["authorization"] == f"Bearer {TOKEN}"
    assert result.ok


@pytest.mark.parametrize(
    "to", ["http://example.com/", "http://169.254.169.254/latest/", "http://[::1]/", "ftp://localhost/x"]
)
async def test_a_redirect_to_elsewhere_is_refused(tmp_path: Path, to: str) -> None:
    web, result = await redirected(tmp_path, redirecting(to))

    assert len(web.seen) == 1
    assert not result.ok


async def test_secrets_are_not_carried_to_another_host_of_the_same_name(tmp_path: Path) -> None:
    async with open_web() as other:
        to = f"http://localhost:{other.port}/"
        headers = {"x-token": "${secrets.hub.token}"}
        _, result = await redirected(tmp_path, redirecting(to), headers=headers)

        assert other.seen == []
        assert f"location: {to}" in result.content


async def test_a_login_that_the_model_wrote_itself_is_not_carried_along_either(tmp_path: Path) -> None:
    async with open_web() as other:
        to = f"http://localhost:{other.port}/"
        await redirected(tmp_path, redirecting(to), headers={"authorization": "Bearer mine"})

        assert "authorization" not in other.seen[0].headers


@pytest.mark.parametrize(
    ("status", "method", "body"), [(303, "GET", ""), (302, "GET", ""), (307, "POST", "b")]
)
async def test_a_redirected_post_becomes_what_browsers_make_of_it(
    tmp_path: Path, status: int, method: str, body: str
) -> None:
    web, _ = await redirected(tmp_path, redirecting("/next", status), method="POST", body="b")
    assert (web.seen[1].method, web.seen[1].body.decode()) == (method, body)


async def test_a_circle_of_redirects_ends(tmp_path: Path) -> None:
    web, result = await redirected(tmp_path, redirecting("/start"))

    assert len(web.seen) == 6
    assert "redirects" in result.content


async def test_an_answer_that_is_too_long_is_cut(tmp_path: Path) -> None:
    content = b"x" * (3 << 20)
    async with open_web(lambda _: (200, {}, content)) as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url)

    assert result.facts["bytes"] == 1 << 20
    assert len(result.content) < 20_000


async def test_a_secret_that_the_cut_goes_through_does_not_show_its_half(tmp_path: Path) -> None:
    content = b"x" * ((1 << 20) - 10) + TOKEN.encode()
    async with open_web(lambda _: (200, {}, content)) as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url)

    assert "tok-Canary" not in result.content


async def test_what_was_compressed_is_not_unpacked(tmp_path: Path) -> None:
    respond = lambda _: (200, {"content-encoding": "gzip"}, b"\x1f\x8b" + b"z" * 99)  # noqa: E731
    async with open_web(respond) as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url)

    assert web.seen[0].headers["accept-encoding"] == "identity"
    assert "coding gzip" in result.content


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        web.stall = True
        result = await ask(bench, url=web.url, timeout_s=1)
    assert "no answer within 1 s" in result.content


@pytest.mark.parametrize("name", ["host", "Content-Length", "transfer-encoding", "Accept-Encoding"])
async def test_headers_of_the_connection_itself_are_not_the_model_s(tmp_path: Path, name: str) -> None:
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        await ask(bench, url=web.url, method="POST", headers={name: "7"}, body="abc")

    assert web.seen[0].body == b"abc"
    assert web.seen[0].headers["host"] == f"localhost:{web.port}"


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\0b"])
async def test_a_header_cannot_smuggle_another(tmp_path: Path, value: str) -> None:
    async with open_web() as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url, headers={"a": value})

    assert web.seen == []
    assert not result.ok


@pytest.mark.parametrize("status", [404, 500])
async def test_an_answer_that_is_an_error_is_told_as_one(tmp_path: Path, status: int) -> None:
    async with open_web(lambda _: (status, {}, b"sorry")) as web, open_bench(tmp_path, policy=ALLOW) as bench:
        result = await ask(bench, url=web.url)

    assert not result.ok
    assert result.content.startswith(f"HTTP {status}")
    assert "sorry" in result.content


PRINTABLE = st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=0x17F), min_size=6, max_size=40)


@given(secret=PRINTABLE, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_a_secret_within_a_longer_text_is_found_in_base64_and_hex(
    secret: str, before: bytes, after: bytes
) -> None:
    redactor = Redactor({"a": secret})
    raw = secret.encode()
    for coded in (
        base64.b64encode(before + raw + after).decode(),
        base64.urlsafe_b64encode(before + raw + after).decode(),
        (before + raw + after).hex(),
    ):
        assert MASK in redactor.text(coded)


# --- a secret goes to its own hosts -------------------------------------------------------------------------

TWO_HOSTS = {"network_policy": {"allow": ["localhost", "127.0.0.1"]}, "secrets_map": SECRETS}


def bound(*hosts: str, allow: tuple[str, ...] = ("localhost", "127.0.0.1")) -> dict[str, Any]:
    return {**TWO_HOSTS, "network_policy": {"allow": allow}, "secret_hosts": {"hub": hosts}}


@pytest.mark.parametrize(
    "put",
    [
        {"headers": {"authorization": "Bearer ${secrets.hub.token}"}},
        {"basic_auth": "u:${secrets.hub.token}"},
        {"method": "POST", "body": "${secrets.hub.token}"},
        {"method": "POST", "json": {"deep": [{"er": "${secrets.hub.token}"}]}},
        {"path": "${secrets.hub.token}"},
    ],
)
async def test_a_secret_never_goes_to_a_host_that_is_allowed_but_not_its_own(
    tmp_path: Path, put: dict[str, Any]
) -> None:
    path = put.pop("path", "") if "path" in put else ""
    async with open_web() as web, open_bench(tmp_path, policy=bound("localhost")) as bench:
        refused = await ask(bench, url=f"http://127.0.0.1:{web.port}/{path}", **put)

        assert web.seen == []
        assert (await ask(bench, url=f"{web.url}/{path}", **put)).ok
        assert len(web.seen) == 1
        # Without the secret both may be asked.
        assert (await ask(bench, url=f"http://127.0.0.1:{web.port}/")).ok

    assert not refused.ok
    assert refused.content == "the secret hub must not go to 127.0.0.1; it may go to localhost"


async def test_a_secret_without_hosts_goes_nowhere_unless_there_is_one_host_only(tmp_path: Path) -> None:
    header = {"x-token": "${secrets.hub.token}"}
    async with open_web() as web:
        async with open_bench(tmp_path, policy=TWO_HOSTS) as bench:
            refused = await ask(bench, url=web.url, headers=header)

            assert "an operator has to name its hosts" in refused.content
            assert "${secrets.hub.token} (to no host)" in bench.box.tools["http_request"].description
        async with open_bench(tmp_path, policy=bound(allow=("localhost",))) as bench:
            assert (await ask(bench, url=web.url, headers=header)).ok

    assert len(web.seen) == 1


async def test_two_secrets_in_one_request_need_both_to_belong_there(tmp_path: Path) -> None:
    policy = bound("localhost") | {"secrets_map": {**SECRETS, "other": {"key": "other-canary-1"}}}
    policy["secret_hosts"] = {"hub": ["localhost"], "other": ["127.0.0.1"]}
    async with open_web() as web, open_bench(tmp_path, policy=policy) as bench:
        both = {"x-a": "${secrets.hub.token}", "x-b": "${secrets.other.key}"}
        for host in ("localhost", "127.0.0.1"):
            assert not (await ask(bench, url=f"http://{host}:{web.port}/", headers=both)).ok

        assert web.seen == []


async def test_a_redirect_does_not_take_a_secret_to_another_allowed_host(tmp_path: Path) -> None:
    async with open_web() as web, open_web(redirecting(f"http://127.0.0.1:{web.port}/x", 307)) as first:
        async with open_bench(tmp_path, policy=bound("localhost")) as bench:
            header = {"x-token": "${secrets.hub.token}"}
            await ask(bench, url=f"{first.url}/start", method="POST", headers=header, body="b")

        assert len(first.seen) == 1
        assert web.seen == []
