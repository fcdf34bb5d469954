"""The attacks on the egress proxy that one world with all of its servers can stand."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from sexton_runner.egress.client_hello import UNRECOGNISED_NAME
from tests.worlds.client_hello import client_hello
from tests.worlds.egress import ANSWER_S, PLACEHOLDER, SECRET, EgressWorld, head, read_reply, send

Attempt = Callable[[EgressWorld], Awaitable[None]]
PASSES = "allowed"


@dataclass(frozen=True)
class Attack:
    """``ends`` is the verdict and its reason, as the run's record tells them."""

    name: str
    attempt: Attempt
    ends: str


def connect(target: str) -> Attempt:
    """Ask for a tunnel. ``{shut}`` is the port of a server that is not allowed, and so on."""

    async def attempt(world: EgressWorld) -> None:
        stream, reply = await world.tunnel(filled(world, target))
        await stream.aclose()
        assert reply.status != 200, "the tunnel was opened"
        reply.problem()

    return attempt


def raw(text: str) -> Attempt:
    """Send a request as it stands; line ends are written as they are sent."""

    async def attempt(world: EgressWorld) -> None:
        reply = await world.say(filled(world, text).encode("latin-1"))
        if reply.status != 200:
            reply.problem()

    return attempt


def inside(text: str, host: str = "bound.example") -> Attempt:
    """Send a request within TLS that ends at the proxy."""

    async def attempt(world: EgressWorld) -> None:
        stream = await world.tls(host)
        async with stream:
            await send(stream, filled(world, text).encode("latin-1"))
            reply = await read_reply(stream)
        if reply.status != 200:
            reply.problem()

    return attempt


def ruled(line: str, headers: str = "") -> Attempt:
    """Ask the host of which only GET below /docs is allowed."""
    return inside(f"{line} HTTP/1.1\r\nHost: {{ruled}}\r\n{headers}\r\n", "ruled.example")


def hello(*, host: str = "open.example", **said: object) -> Attempt:
    """Begin TLS by hand in a tunnel."""

    async def attempt(world: EgressWorld) -> None:
        stream, reply = await world.tunnel(f"{host}:{world.port(host)}")
        async with stream:
            assert reply.status == 200
            await send(stream, client_hello(**said))  # type: ignore[arg-type]
            with trio.fail_after(ANSWER_S):
                alert = await stream.receive_some(7)
        assert alert in (b"", UNRECOGNISED_NAME)

    return attempt


def echoed(path: str, *headers: str, coding: str = "") -> Attempt:
    """Let the bound server say the credential back."""

    async def attempt(world: EgressWorld) -> None:
        sent = headers or (f"Authorization: Bearer {PLACEHOLDER}",)
        reply = await world.get_tls("bound.example", path, *sent)
        assert SECRET.encode() in world.origins["bound.example"].text
        assert not shows_secret(reply.body), "the answer shows the secret"
        assert not shows_secret(repr(reply.headers).encode()), "the head of the answer shows the secret"

    return attempt


def shows_secret(data: bytes) -> bool:
    return any(form in data for form in (SECRET.encode(), SECRET.encode().hex().encode(), _BASE64))


_BASE64 = base64.b64encode(SECRET.encode())[4:-4]


def filled(world: EgressWorld, text: str) -> str:
    for name in world.origins:
        text = text.replace("{" + name.partition(".")[0] + "}", f"{name}:{world.port(name)}")
        text = text.replace("{port of " + name.partition(".")[0] + "}", str(world.port(name)))
    return text


async def websocket_passes(world: EgressWorld) -> None:
    stream = await world.tls("open.example")
    async with stream:
        await send(stream, head("GET", "/", "open.example", "Upgrade: websocket", "Connection: upgrade"))
        reply = await read_reply(stream)
    assert reply.status == 200


async def h2_is_not_negotiated(world: EgressWorld) -> None:
    stream = await world.tls("bound.example", alpn=["h2", "http/1.1"])
    async with stream:
        assert stream.selected_alpn_protocol() == "http/1.1"
        await send(stream, head("GET", "/", world.authority("bound.example")))
        await read_reply(stream)


async def redirect_is_judged_again(world: EgressWorld) -> None:
    there = f"http://{world.authority('shut.example')}/"
    reply = await world.get("plain.example", f"/redirect?to={there}")
    assert (reply.status, reply.headers["location"]) == (302, there)
    await raw(f"GET {there} HTTP/1.1\r\nHost: {{shut}}\r\n\r\n")(world)


async def parts_are_not_asked_for(world: EgressWorld) -> None:
    before = len(world.origins["bound.example"].heard)
    sent = (f"Authorization: Bearer {PLACEHOLDER}", "Range: bytes=0-3")
    await world.get_tls("bound.example", "/", *sent)
    assert b"range" not in b"".join(world.origins["bound.example"].heard[before:]).lower()


async def fronting_where_requests_are_read(world: EgressWorld) -> None:
    stream = await world.tls("ruled.example")
    async with stream:
        await send(stream, head("GET", "/docs", world.authority("shut.example")))
        (await read_reply(stream)).problem()


CHUNKED = "Transfer-Encoding: chunked\r\n"
WEBSOCKET = "Upgrade: websocket\r\nConnection: upgrade\r\n"
REQUEST = "GET http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\n"
POST = "POST http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\n"
INNER = "GET / HTTP/1.1\r\nHost: {bound}\r\n"

TARGETS = (
    ("a host that is not named", "{shut}", "refused host"),
    ("an address of loopback", "127.0.0.1:{port of shut}", "refused host"),
    ("an address in one number", "2130706433:{port of shut}", "refused host"),
    ("an octal address", "0177.0.0.1:{port of shut}", "refused host"),
    ("a hexadecimal address", "0x7f.0.0.1:{port of shut}", "refused host"),
    ("a short address", "127.1:{port of shut}", "refused host"),
    ("an address with a trailing dot", "127.0.0.1.:{port of shut}", "refused host"),
    ("IPv6 loopback", "[::1]:{port of shut}", "refused host"),
    ("IPv4 within IPv6", "[::ffff:127.0.0.1]:{port of shut}", "refused host"),
    ("IPv6 with a zone", "[fe80::1%25lo]:443", "refused host"),
    ("IPv6 without brackets", "::1:443", "refused host"),
    ("the metadata address", "169.254.169.254:80", "refused host"),
    ("metadata by IPv6", "[fd00:ec2::254]:80", "refused host"),
    ("a user before the host", "open.example@127.0.0.1:{port of shut}", "refused host"),
    ("a host that ends in an allowed name", "evilopen.example:443", "refused host"),
    ("a host below an allowed name", "a.open.example:443", "refused host"),
    ("a trailing dot", "shut.example.:{port of shut}", "refused host"),
    ("two trailing dots", "open.example..:{port of open}", "refused host"),
    ("an empty label", "open..example:443", "refused host"),
    ("a look-alike in punycode", "xn--pen-8cd.example:443", "refused host"),
    ("an international name that is not encoded", "\u043epen.example:443", "refused smuggling"),
    ("a percent code in the name", "open%2eexample:443", "refused host"),
    ("a name with a NUL", "open.example\0.shut.example:443", "refused smuggling"),
    ("another port", "open.example:22", "refused port"),
    ("port 0", "open.example:0", "refused host"),
    ("a port beyond all", "open.example:65979", "refused host"),
    ("a port with a sign", "open.example:+443", "refused host"),
    ("no port", "open.example", "refused host"),
    ("a path in CONNECT", "open.example:443/x", "refused host"),
    ("a whole URL in CONNECT", "https://{open}/", "refused host"),
)

HEADS = (
    ("Host that differs from the URL", "GET http://{plain}/ HTTP/1.1\r\nHost: {shut}\r\n\r\n", "host_header"),
    ("two Host headers", REQUEST + "Host: {shut}\r\n\r\n", "smuggling"),
    ("no Host", "GET http://{plain}/ HTTP/1.1\r\n\r\n", "smuggling"),
    ("both lengths", POST + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "smuggling"),
    ("two Content-Lengths", POST + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n", "smuggling"),
    ("a list of Content-Lengths", POST + "Content-Length: 0, 5\r\n\r\n", "smuggling"),
    ("a Content-Length with a sign", POST + "Content-Length: +5\r\n\r\nhello", "smuggling"),
    ("a Transfer-Encoding that hides", POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "smuggling"),
    ("two codings", POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "smuggling"),
    ("a blank before the colon", POST + "Content-Length : 5\r\n\r\nhello", "smuggling"),
    ("a folded header", REQUEST + "X-A: b\r\n Content-Length: 5\r\n\r\n", "smuggling"),
    ("a bare line feed", REQUEST + "X-A: b\nContent-Length: 5\r\n\r\n", "smuggling"),
    ("a bare carriage return", REQUEST + "X-A: b\rContent-Length: 5\r\n\r\n", "smuggling"),
    ("a NUL in a header", REQUEST + "X-A: b\0c\r\n\r\n", "smuggling"),
    ("an empty line first", "\r\n\r\n" + REQUEST + "\r\n", "smuggling"),
    (
        "a chunk of a wrong length",
        POST + CHUNKED + "\r\n1\r\nab\r\n0\r\n\r\n",
        "smuggling",
    ),
    ("a chunk with a sign", POST + CHUNKED + "\r\n+1\r\na\r\n0\r\n\r\n", "smuggling"),
    ("a chunk length of 20 digits", POST + CHUNKED + "\r\n" + "f" * 21 + "\r\n", "smuggling"),
    (
        "HTTP/1.0 with chunks",
        POST.replace("1.1", "1.0") + CHUNKED + "\r\n",
        "smuggling",
    ),
    ("HTTP/0.9", "GET http://{plain}/\r\n\r\n", "smuggling"),
    ("HTTP/3 on the first line", "GET http://{plain}/ HTTP/3.0\r\n\r\n", "smuggling"),
    ("HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "head"),
    ("a target without a host", "GET / HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    ("a user in the URL", "GET http://plain.example@{shut}/ HTTP/1.1\r\nHost: {shut}\r\n\r\n", "smuggling"),
    ("a backslash in the URL", "GET http://{plain}\\@{shut}/ HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    ("another scheme", "GET ftp://{plain}/ HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    ("https without CONNECT", "GET https://{plain}/ HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    ("a fragment", "GET http://{plain}/#@{shut} HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    ("TRACE", "TRACE http://{plain}/ HTTP/1.1\r\nHost: {plain}\r\n\r\n", "smuggling"),
    (
        "CONNECT with a body",
        "CONNECT {open} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
        "smuggling",
    ),
    (
        "WebSocket where requests are read",
        REQUEST + WEBSOCKET + "\r\n",
        "upgrade",
    ),
    ("a head of 100 KB", REQUEST + "X-A: " + "b" * 100_000 + "\r\n\r\n", "head"),
    ("150 headers", REQUEST + "X-A: b\r\n" * 150 + "\r\n", "head"),
)

WITHIN = (
    ("Host of another (domain fronting)", "GET / HTTP/1.1\r\nHost: {shut}\r\n\r\n", "host_header"),
    ("the URL of another", "GET http://{shut}/ HTTP/1.1\r\nHost: {shut}\r\n\r\n", "smuggling"),
    ("the URL of another over https", "GET https://{open}/ HTTP/1.1\r\nHost: {open}\r\n\r\n", "smuggling"),
    ("a tunnel in the tunnel", "CONNECT {shut} HTTP/1.1\r\nHost: {shut}\r\n\r\n", "smuggling"),
    ("both lengths", INNER + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "smuggling"),
    ("a folded header", INNER + "X-A: b\r\n\tc\r\n\r\n", "smuggling"),
    ("WebSocket beside a credential", INNER + WEBSOCKET + "\r\n", "upgrade"),
    ("HTTP/2 by prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "head"),
)

RULED = (
    ("dots", "GET /docs/../admin", "path"),
    ("encoded dots", "GET /docs/%2e%2e/admin", "path"),
    ("dots encoded twice", "GET /docs/%252e%252e/admin", "path"),
    ("dots with a parameter", "GET /docs/..;/admin", "path"),
    ("dots behind a backslash", "GET /docs/..\\admin", "path"),
    ("dots behind an encoded slash", "GET /docs/x%2f..%2f..%2fadmin", "path"),
    ("wide dots", "GET /docs/%ef%bc%8e%ef%bc%8e/admin", "path"),
    ("overlong dots", "GET /docs/%c0%ae%c0%ae/admin", "path"),
    ("a NUL", "GET /docs%00/../admin", "path"),
    ("two slashes", "GET //docs/x", "path"),
    ("half a segment", "GET /docs-of-others", "path"),
    ("another case", "GET /DOCS", "path"),
    ("another method", "DELETE /docs", "method"),
    ("a method in small letters", "get /docs", "method"),
    ("the asterisk", "OPTIONS *", "method"),
)

ECHOES = ("plain", "base64", "percent", "hex", "json", "bytewise", "gzip", "header")

ATTACKS = (
    *(Attack(f"CONNECT: {name}", connect(target), ends) for name, target, ends in TARGETS),
    *(Attack(f"head: {name}", raw(text), f"refused {why}") for name, text, why in HEADS),
    *(Attack(f"within TLS: {name}", inside(text), f"refused {why}") for name, text, why in WITHIN),
    *(
        Attack(
            f"path: {name}",
            inside(f"{line} HTTP/1.1\r\nHost: {{ruled}}\r\n\r\n", "ruled.example"),
            f"refused {why}",
        )
        for name, line, why in RULED
    ),
    Attack(
        "path: a header that replaces it",
        ruled("GET /docs", "X-Original-URL: /admin\r\n"),
        "refused method",
    ),
    Attack("TLS: SNI of another host", hello(name="shut.example"), "refused sni"),
    Attack(
        "TLS: SNI of another host, where it ends here",
        hello(host="bound.example", name="open.example"),
        "refused sni",
    ),
    Attack("TLS: no SNI", hello(name=None), "refused sni"),
    Attack("TLS: two SNIs", hello(name="open.example", second="shut.example"), "refused sni"),
    Attack("TLS: SNI twice", hello(name="open.example", twice=True), "refused sni"),
    Attack(
        "TLS: ECH with another outer name",
        hello(name="shut.example", encrypted=True),
        "refused sni",
    ),
    Attack(
        "TLS: SNI in records of one byte",
        hello(name="shut.example", record=1),
        "refused sni",
    ),
    Attack("TLS: SNI with a NUL", hello(name="open.example\0.shut.example"), "refused sni"),
    Attack("TLS: HTTP/2 by ALPN, where it ends here", h2_is_not_negotiated, PASSES),
    Attack("TLS: WebSocket, where it passes through", websocket_passes, PASSES),
    Attack("domain fronting, where TLS ends", fronting_where_requests_are_read, "refused host_header"),
    Attack("a redirect to a host that is not allowed", redirect_is_judged_again, "refused host"),
    *(Attack(f"echo: {how}", echoed(f"/{how}"), PASSES) for how in ECHOES),
    Attack("echo: in a coding that is not read", echoed("/brotli"), "refused answer"),
    Attack("echo: as a redirect", echoed(f"/redirect?to=/?key={PLACEHOLDER}&key={PLACEHOLDER}"), PASSES),
    Attack("echo: the query", echoed(f"/?key={PLACEHOLDER}"), PASSES),
    Attack("echo: in parts that are asked for", parts_are_not_asked_for, PASSES),
)
