"""Reads what was sent to a client of HTTP/2, and holds it to what a server may send."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

import hpack

from tests.fuzz.http2_reading import LARGEST, Reading
from tests.fuzz.http2_world import Told
from tests.worlds.http2_client import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    ERRORS,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)

NO_ERROR, REFUSED, CANCEL = "NO_ERROR", "REFUSED_STREAM", "CANCEL"
LAST_WORDS: Final = 0x7FFF_FFFF


@dataclass
class Outcome:
    """What came of one stream."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    ended: bool = False
    reset: str = ""
    """The error with which the server ended it."""

    @property
    def over(self) -> bool:
        return self.ended or bool(self.reset)


class Answers:
    """By its stream, what was sent. Raises AssertionError where a server may not send such a thing."""

    def __init__(self, told: Told, reading: Reading, *, to_its_end: bool, is_prompt: bool) -> None:
        """``to_its_end``: the client has taken all that was sent; ``is_prompt``: and always at once."""
        self.outcomes: dict[int, Outcome] = {}
        self.goodbyes: list[str] = []
        """The codes of GOAWAY, as they came."""
        self.ends_with_goodbye = False
        self._reading = reading
        self._marks = told.marks
        self._is_prompt = is_prompt
        self._decoder = hpack.Decoder()
        self._bodies = 0
        self._pongs: list[bytes] = []
        self._acks = 0
        self._last_stream = LAST_WORDS
        at, sent = 0, told.sent
        while len(sent) - at >= 9:
            size = int.from_bytes(sent[at : at + 3])
            if at + 9 + size > len(sent):
                break
            stream = int.from_bytes(sent[at + 5 : at + 9])
            self._take(sent[at + 3], sent[at + 4], stream, sent[at + 9 : at + 9 + size], at)
            at += 9 + size
        assert at == len(sent) or not to_its_end, "a part of a frame"
        assert self._bodies <= reading.largest_connection_window, "more than the connection's window"
        assert self._acks <= reading.settings
        assert self._pongs == reading.pings[: len(self._pongs)]

    @property
    def error(self) -> str:
        """With which the connection ended; empty if it ended well."""
        return next((code for code in self.goodbyes if code != NO_ERROR), "")

    def _take(self, kind: int, flags: int, stream: int, payload: bytes, at: int) -> None:
        assert not self.error, "a frame after the last"
        assert len(payload) <= LARGEST
        self.ends_with_goodbye = kind == GOAWAY
        match kind:
            case _ if kind in {HEADERS, DATA}:
                self._part(kind, flags, stream, payload, at)
            case _ if kind == RST_STREAM:
                outcome = self._of(stream)
                assert not outcome.reset, "a stream ends twice"
                outcome.reset = ERRORS[int.from_bytes(payload)]
            case _ if kind == SETTINGS:
                assert at == 0 or flags & ACK
                self._acks += flags & ACK
            case _ if kind == PING:
                assert flags & ACK
                self._pongs.append(payload)
            case _ if kind == GOAWAY:
                last, code = struct.unpack(">II", payload[:8])
                # Of two that wait together, libnghttp2 names the last stream of its own by itself.
                is_own = code and not self._is_prompt
                assert last <= self._last_stream or is_own, "a later stream is taken for served"
                self._last_stream = last
                self.goodbyes.append(ERRORS[code])
            case _:
                assert kind == WINDOW_UPDATE, "a frame that nobody expects"

    def _part(self, kind: int, flags: int, stream: int, payload: bytes, at: int) -> None:
        assert stream in self._reading.requests, "an answer to half a head"
        outcome = self._of(stream)
        assert not outcome.over, "an answer goes on after its end"
        assert at < self._taken_back_at(stream), "an answer on a stream that was taken back"
        if kind == HEADERS:
            assert flags & END_HEADERS
            fields = self._decoder.decode(payload, raw=True)
            [status] = [int(value) for name, value in fields if name == b":status"]
            assert not outcome.status, "a second answer"
            if status >= 200:
                outcome.status = status
                outcome.headers = [(bytes(name), bytes(value)) for name, value in fields]
            else:
                assert not flags & END_STREAM
        else:
            assert outcome.status, "a body without its head"
            outcome.body += payload
            self._bodies += len(payload)
            most = self._reading.largest_window + self._reading.granted.get(stream, 0)
            assert len(outcome.body) <= most, "more than the stream's window"
        if flags & END_STREAM:
            outcome.ended = True
            self._check_length(stream, outcome)

    def _check_length(self, stream: int, outcome: Outcome) -> None:
        said = dict(outcome.headers).get(b"content-length")
        is_head = (b":method", b"HEAD") in self._reading.requests[stream].fields
        assert said is None or is_head or int(said) == len(outcome.body), "another length than was said"

    def _of(self, stream: int) -> Outcome:
        assert stream in self._reading.begun, "an answer that nobody asked for"
        return self.outcomes.setdefault(stream, Outcome())

    def _taken_back_at(self, stream: int) -> int:
        """How much had been sent when it was read that the client takes the stream back."""
        behind = self._reading.resets.get(stream)
        if behind is not None:
            for read, sent in self._marks:
                if read >= behind:
                    return sent
        return LAST_WORDS
