"""The load client: what it understands, what it counts, and that an open loop hides no wait."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bench import load, wire
from bench.load import Conversation, Job, Place, Send, percentile, run

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@contextmanager
def server(answer: Callable[[int], bytes]) -> Iterator[tuple[str, int]]:
    """One thread a connection; ``answer`` is given the number of the request on it, and b"" hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []

        def speak(peer: socket.socket) -> None:
            with peer:
                number, had = 0, b""
                while data := peer.recv(65536):
                    had += data
                    while b"\r\n\r\n" in had:
                        _, _, had = had.partition(b"\r\n\r\n")
                        if not (said := answer(number)):
                            return
                        peer.sendall(said)
                        number += 1

        def accept() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=speak, args=(peer,)))
                threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield listener.getsockname()
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join()


def three(place: Place, data: bytes) -> Conversation:
    for _ in range(3):
        answer = yield Send(data)
        place.notes.append((place.number, answer.status, answer.json()))


def late(place: Place, data: bytes, late_ns: int) -> Conversation:
    answer = yield Send(data, place.began_ns - late_ns)
    place.notes.append(answer.due_ns - place.began_ns)


def early(place: Place, data: bytes) -> Conversation:
    answer = yield Send(data, place.began_ns + 1_000_000)
    place.notes.append(answer.received_ns >= answer.due_ns)


def begun(place: Place, data: bytes) -> Conversation:
    yield Send(data, must=True)
    place.notes.append("ended")
    yield Send(data)
    place.notes.append("too much")


REQUEST = wire.request("GET", "/", host="localhost")


def job(address: tuple[str, int], begin: load.Begin, *arguments: object, connections: int = 1) -> Job:
    return Job(address, begin, arguments, connections, run_s=60, warm_s=0)


def test_every_connection_holds_its_own_conversation() -> None:
    with server(lambda _: OK) as address:
        loaded = run(job(address, three, REQUEST, connections=2))

    assert sorted(loaded.notes) == [(n, 200, {}) for n in (0, 0, 0, 1, 1, 1)]
    assert (loaded.answers, loaded.counted, loaded.statuses) == (6, 6, {200: 6})
    assert len(loaded.latencies_ns) == 6


def test_answers_that_come_in_pieces_are_put_together() -> None:
    parts: list[bytes] = []

    def answer(number: int) -> bytes:
        # The second answer's first bytes come with the first answer, the rest on the next request.
        parts.append(OK)
        return OK + OK[:20] if number == 0 else OK[20:]

    with server(answer) as address:
        loaded = run(Job(address, load.each, ([REQUEST, REQUEST],), 1, run_s=60, warm_s=0))

    assert [note[1:] for note in loaded.notes] == [(200, b"{}"), (200, b"{}")]


def test_a_request_that_goes_out_late_is_counted_from_when_it_was_due() -> None:
    # So it is with all that are due while an earlier answer keeps their connection waiting.
    second = 1_000_000_000
    with server(lambda _: OK) as address:
        loaded = run(job(address, late, REQUEST, second))

    assert loaded.notes == [-second]
    assert loaded.latencies_ns[0] > second


def test_a_request_does_not_go_out_before_it_is_due() -> None:
    with server(lambda _: OK) as address:
        assert run(job(address, early, REQUEST)).notes == [True]


def test_when_the_run_is_over_only_what_was_begun_is_ended() -> None:
    with server(lambda _: OK) as address:
        loaded = run(Job(address, begun, (REQUEST,), 1, run_s=0, warm_s=0))

    assert loaded.notes == ["ended"]
    assert (loaded.answers, loaded.counted) == (1, 0)


def test_a_server_that_hangs_up_is_no_measurement() -> None:
    with server(lambda _: b"") as address, pytest.raises(ConnectionError):
        run(job(address, three, REQUEST))


def test_error_answers_are_noted() -> None:
    refused = b"HTTP/1.1 503 x\r\nContent-Length: 4\r\n\r\nbusy"
    with server(lambda n: OK if n < 2 else refused) as address:
        loaded = run(Job(address, load.each, ([REQUEST] * 3,), 1, run_s=60, warm_s=0))

    assert loaded.statuses == {200: 2, 503: 1}
    assert loaded.notes[-1] == (2, 503, b"busy")


@pytest.mark.parametrize(
    ("sent", "understood"),
    [
        (b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n", (204, b"", 33)),
        (b"HTTP/1.1 200 OK\r\nCONTENT-LENGTH: 1\r\nx: y\r\n\r\n1HTTP", (200, b"1", 45)),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1234", None),
        (b"HTTP/1.1 200 OK\r\ncontent-le", None),
    ],
)
def test_answers_are_told_from_what_follows_them(
    sent: bytes, understood: tuple[int, bytes, int] | None
) -> None:
    assert wire.parse(sent) == understood


def test_an_answer_without_a_length_is_not_guessed_at() -> None:
    with pytest.raises(wire.NotUnderstood):
        wire.parse(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")


def test_a_request_carries_its_token_and_length() -> None:
    sent = wire.post_json("/v1/x", {"a": 1}, host="h:1", token="t")

    assert sent.startswith(b"POST /v1/x HTTP/1.1\r\nhost: h:1\r\nauthorization: Bearer t\r\n")
    assert sent.endswith(b'content-length: 7\r\n\r\n{"a":1}')


def test_percentiles_are_values_that_were_seen() -> None:
    assert [percentile(range(1, 101), share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert percentile([7], 0.01) == 7
    assert percentile([], 0.5) == 0
