"""The parts of the egress proxy hold for any input: hellos, masks and paths."""

import contextlib
import gzip
import random
import ssl
import zlib

import pytest
from hypothesis import given, settings, strategies as st

from sexton_runner.body_masks import BodyMask, Unreadable
from sexton_runner.egress.client_hello import Malformed, read_hello
from sexton_runner.egress.heads import BadTarget, judge_head, read_target
from sexton_runner.egress.hosts import read_host
from sexton_runner.egress.paths import ambiguity, lies_under, without_dots
from sexton_runner.redact import Redactor, forms
from tests.thorough import examples
from tests.worlds.client_hello import client_hello
from tests.worlds.egress import SECRET, SERVERS

ROUNDS = 800


def genuine_hello(name: str) -> bytes:
    """Give what OpenSSL sends first."""
    sent = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


def name_for_openssl(data: bytes) -> tuple[bool, str | None]:
    """Tell whether OpenSSL comes as far as the server's name, and which it reads."""
    names: list[str | None] = []
    context = SERVERS.context_for("bound.example")
    context.sni_callback = lambda _, name, __: names.append(name)
    coming = ssl.MemoryBIO()
    coming.write(data)
    with contextlib.suppress(ssl.SSLError):
        context.wrap_bio(coming, ssl.MemoryBIO(), server_side=True).do_handshake()
    return bool(names), names[0] if names else None


def test_the_reader_of_hellos_never_reads_another_name_than_openssl() -> None:
    chance = random.Random(14)
    seeds = [genuine_hello("a.example"), client_hello(name="a.example"), client_hello(name="b.a", record=50)]
    read = differ = 0
    for _ in range(ROUNDS):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            hello = read_hello(bytes(data))
        except Malformed:
            continue
        known, name = name_for_openssl(bytes(data))
        if hello is not None and known:
            read += 1
            differ += (hello.server_name or "").lower() != (name or "").lower()

    assert differ == 0
    assert read > ROUNDS // 10


def test_a_genuine_hello_is_read_and_each_beginning_of_it_asks_for_more() -> None:
    hello = genuine_hello("api.example.org")

    assert read_hello(hello) == read_hello(client_hello(name="api.example.org"))
    assert [read_hello(hello[:count]) for count in range(len(hello))] == [None] * len(hello)


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_no_cut_and_no_coding_lets_a_secret_through(data: st.DataObject) -> None:
    redactor = Redactor({"a": SECRET})
    parts = st.sampled_from([*sorted(forms(SECRET)), SECRET[:7], SECRET[-9:], "x", "\xe9", "\0", SECRET * 2])
    body = "".join(data.draw(st.lists(parts, max_size=8))).encode()
    packed, coding = data.draw(
        st.sampled_from(
            [(body, ""), (gzip.compress(body, mtime=0), "gzip"), (zlib.compress(body), "deflate")]
        )
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(packed)), max_size=6)))
    mask = BodyMask(redactor, coding)
    pieces = [packed[a:b] for a, b in zip([0, *cuts], [*cuts, len(packed)], strict=True)]
    out = b"".join([one for piece in pieces for one in mask.feed(piece)] + [mask.end()])

    assert len(out) == len(body), "a mask is as long as what it covers"
    assert not any(form.encode() in out for form in forms(SECRET))
    assert out == redactor.begin_bytes(body, more=False)[0]
    assert mask.has_masked == (out != body)


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(b"x" * 99, mtime=0)[:-3], "gzip"),
        (b"no gzip", "gzip"),
        (zlib.compress(b"x") + b"y", "deflate"),
        (b"x", "br"),
        (b"x", "gzip, gzip"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(body: bytes, coding: str) -> None:
    with pytest.raises(Unreadable):
        unpack(body, coding)


def unpack(body: bytes, coding: str) -> None:
    mask = BodyMask(Redactor({"a": SECRET}), coding)
    list(mask.feed(body))
    mask.end()


PIECES = ("..", ".", "docs", "%2e", "%2E", "%2f", "%5c", "\\", "/", ";", "%25", "%00", "a")


@given(st.lists(st.sampled_from(PIECES)))
@settings(max_examples=examples(100), deadline=None)
def test_a_path_that_passes_leads_nowhere_else_however_it_is_read(pieces: list[str]) -> None:
    path = without_dots("/" + "".join(pieces))
    if ambiguity(path) is not None or not lies_under(path, ["/docs"]):
        return
    for decoded in (path, decode(path), decode(decode(path))):
        for read in (decoded, decoded.replace("\\", "/")):
            plain = "/".join(segment.partition(";")[0] for segment in read.split("/"))

            assert lies_under(without_dots(plain), ["/docs"])


def decode(path: str) -> str:
    for code, char in (("%2e", "."), ("%2E", "."), ("%2f", "/"), ("%5c", "\\"), ("%25", "%")):
        path = path.replace(code, char)
    return path


@given(st.binary(max_size=300), st.text(max_size=60))
@settings(max_examples=examples(60), deadline=None)
def test_no_input_is_more_than_refused(data: bytes, text: str) -> None:
    with contextlib.suppress(Malformed):
        read_hello(b"\x16\x03\x01" + data)
    with contextlib.suppress(ValueError):
        assert read_host(read_host(text)) == read_host(text)
    with contextlib.suppress(BadTarget):
        read_target(text, None)

    judge_head(data + b"\r\n\r\n")
