"""A certificate that changes on disk is shown to whoever comes next, and cuts nobody who is there."""

import shutil
import ssl
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from sexton_http.wire import live_certificate
from sexton_http.wire.live_certificate import LiveCertificate
from sexton_http.wire.server import Doors
from sexton_http.wire.tls import Tls
from sexton_runner.trust import pinned
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import Reader, dial, echo, serving
from tests.worlds.certificates import make_certificate

POST = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi"


@pytest.fixture
def renewed(tmp_path: Path, certificate: Tls) -> tuple[Tls, Tls]:
    """What a server shows, and what is to take its place."""
    files = Tls(tmp_path / "cert.pem", tmp_path / "key.pem")
    shutil.copy(certificate.certificate, files.certificate)
    shutil.copy(certificate.key, files.key)
    (tmp_path / "next").mkdir()
    return files, make_certificate(tmp_path / "next", "localhost", "127.0.0.1")


async def shown(doors: Doors) -> bytes | None:
    stream = await dial(doors)
    assert isinstance(stream, trio.SSLStream)
    found: bytes | None = stream.getpeercert(binary_form=True)
    await trio.aclose_forcefully(stream)
    return found


async def test_a_renewed_certificate_is_shown_to_new_connections_and_old_ones_go_on(
    renewed: tuple[Tls, Tls], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_certificate, "LOOK_S", 0.01)
    files, new = renewed
    wanted = ssl.PEM_cert_to_DER_cert(new.certificate.read_text())
    async with serving(echo, tls=files) as doors:
        before = await shown(doors)
        old = Reader(await dial(doors))
        await old.stream.send_all(POST)
        answers = [await old.answer()]
        new.key.replace(files.key)
        new.certificate.replace(files.certificate)
        with trio.fail_after(PATIENCE_S):
            while await shown(doors) != wanted:
                await trio.sleep(0.01)
        await old.stream.send_all(POST)
        answers.append(await old.answer())
        await trio.aclose_forcefully(old.stream)

    assert before != wanted
    assert [(status, body) for status, _, body in answers] == [(200, b"hi")] * 2


async def test_half_of_a_pair_is_not_taken_up_and_said_once(renewed: tuple[Tls, Tls]) -> None:
    files, new = renewed
    changes: list[str] = []
    live = LiveCertificate(files, lambda: changes.append("changed"))
    first = live.context
    new.certificate.replace(files.certificate)

    with capture_logs() as lines:
        live.look()
        live.look()
        assert live.context is first

        new.key.replace(files.key)
        live.look()

    assert live.context is not first
    assert [line["event"] for line in lines] == ["certificate_not_taken_up", "certificate_taken_up"]
    assert changes == ["changed"]


def test_a_runner_that_knows_its_server_by_a_file_reads_it_again(renewed: tuple[Tls, Tls]) -> None:
    files, new = renewed
    context = pinned(files.certificate)
    before = context.cert_store_stats()["x509"]
    new.certificate.replace(files.certificate)
    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO())

    assert (before, context.cert_store_stats()["x509"]) == (1, 2)
