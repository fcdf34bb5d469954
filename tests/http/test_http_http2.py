"""HTTP/2 and TLS, with and without each other."""

import ssl

import h2.config
import h2.connection
import h2.events
import httpx2
import pytest
import trio

from sexton_http.wire.server import open_doors
from sexton_http.wire.tls import Tls
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import Stream, deaf, dial, dial_port, echo, serving


def trusting(tls: Tls) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(tls.certificate))


@pytest.mark.parametrize(("http2", "version"), [(False, "HTTP/1.1"), (True, "HTTP/2")])
async def test_tls_carries_both_versions(certificate: Tls, http2: bool, version: str) -> None:
    async with serving(echo, tls=certificate) as doors:
        url = f"https://localhost:{doors.port}/"
        async with httpx2.AsyncClient(verify=trusting(certificate), http2=http2, trust_env=False) as client:
            for _ in range(3):
                answer = await client.post(url, content=b"x" * 100_000)
                assert (answer.status_code, len(answer.content), answer.http_version) == (
                    200,
                    100_000,
                    version,
                )
    assert doors.base_url.startswith("https://")


async def test_many_streams_share_a_plain_connection_by_prior_knowledge() -> None:
    answers: list[bytes] = []
    client = httpx2.AsyncClient(http1=False, http2=True, trust_env=False)
    async with serving(echo) as doors, client, trio.open_nursery() as nursery:

        async def post(number: int) -> None:
            answer = await client.post(f"{doors.base_url}/", content=b"%d" % number)
            assert answer.http_version == "HTTP/2"
            answers.append(answer.content)

        for number in range(20):
            nursery.start_soon(post, number)

    assert sorted(answers, key=int) == [b"%d" % number for number in range(20)]


async def test_junk_in_place_of_a_handshake_ends_only_its_connection(certificate: Tls) -> None:
    async with serving(echo, tls=certificate) as doors:
        for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"\x00" * 64):
            async with await dial_port(doors.port) as stream:
                await stream.send_all(junk)
                await stream.send_eof()
                with trio.fail_after(PATIENCE_S):
                    while await closed(stream) is False:
                        pass
        async with httpx2.AsyncClient(verify=trusting(certificate), trust_env=False) as client:
            assert (await client.get(f"https://localhost:{doors.port}/")).status_code == 200


async def closed(stream: Stream) -> bool:
    try:
        return not await stream.receive_some(4096)
    except trio.BrokenResourceError:
        return True


class Http2Client:
    """An HTTP/2 client that does what it should not."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration())
        self.connection.initiate_connection()

    async def request(self, stream_id: int, *, method: str = "POST", end: bool = False) -> None:
        headers = [(":method", method), (":scheme", "http"), (":authority", "x"), (":path", "/a")]
        self.connection.send_headers(stream_id, headers, end_stream=end)
        await self.flush()

    async def flush(self) -> None:
        await self.stream.send_all(self.connection.data_to_send())

    async def events(self) -> list[h2.events.Event]:
        data = await self.stream.receive_some(65536)
        if not data:
            return []
        events: list[h2.events.Event] = self.connection.receive_data(data)
        await self.flush()
        return events

    async def status_of(self, stream_id: int) -> str:
        while events := await self.events():
            for event in events:
                if getattr(event, "stream_id", None) != stream_id:
                    continue
                if isinstance(event, h2.events.ResponseReceived):
                    return dict(event.headers or ())[b":status"].decode()
                if isinstance(event, h2.events.StreamReset):
                    return "reset"
        return "closed"


async def test_connect_is_refused_and_takes_no_other_stream_with_it() -> None:
    async with serving(echo) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        client.connection.send_headers(1, [(":method", "CONNECT"), (":authority", "x:80")])
        await client.flush()
        assert await client.status_of(1) == "reset"

        await client.request(3, end=True)
        assert await client.status_of(3) == "200"


async def test_an_early_answer_on_one_stream_leaves_the_others_alone() -> None:
    async with serving(deaf) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        await client.request(1)
        client.connection.send_data(1, b"x" * 1000, end_stream=True)
        await client.flush()
        assert await client.status_of(1) == "401"

        await client.request(3, end=True)
        assert await client.status_of(3) == "401"


async def test_the_doors_say_what_they_are_bound_to() -> None:
    async with serving(echo) as doors:
        assert doors.port > 0
        assert doors.base_url == f"http://127.0.0.1:{doors.port}"

        with pytest.raises(OSError, match="in use"):
            await open_doors("127.0.0.1", doors.port)
