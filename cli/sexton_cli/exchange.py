"""What a client calls over, and what comes back; it imports no HTTP, so that help does without."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Reply(NamedTuple):
    """Any answer, whatever its status, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Response(Protocol):
    """Any answer as it comes."""

    @property
    def status_code(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def read(self) -> bytes: ...

    def iter_bytes(self) -> Iterator[bytes]: ...

    def iter_lines(self) -> Iterator[str]: ...


class SentEvent(Protocol):
    """One event of a stream."""

    @property
    def event(self) -> str: ...

    @property
    def data(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def retry(self) -> int | None: ...


class EventSource(Protocol):
    """The events of an answer, which may turn out to be none."""

    @property
    def response(self) -> Response: ...

    def __iter__(self) -> Iterator[SentEvent]: ...


class Connection(Protocol):
    """The way to one server. What goes wrong on it is a Fault, also while an answer is read."""

    def stream(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> AbstractContextManager[Response]: ...

    def events(self, path: str, headers: Mapping[str, str]) -> AbstractContextManager[EventSource]: ...
