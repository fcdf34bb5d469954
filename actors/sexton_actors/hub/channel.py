"""What the hub knows of one agent's stream while somebody follows it."""

from collections import deque
from collections.abc import Iterator, Sequence

from sexton_actors.protocol.hub import News
from sexton_engine import ReplyPort
from sexton_storage.records.frames import PAGE_BYTES, Frame

KEPT_FRAMES = 256
KEPT_BYTES = PAGE_BYTES
"""The newest, for those who come back for the next; whoever is further behind reads the store."""
READ_FRAMES = 256
LINGER_LOOKS = 5
"""Looks without a reader after which it is given up: readers come back at once for what follows."""

Waiting = tuple[int, ReplyPort]


class Channel:
    """The frames up to ``upto`` have been seen here; those up to ``head`` are known to be there.

    Numbers grow by one, so that what is kept has no gaps.
    """

    __slots__ = ("_kept", "_quiet", "_waiting", "head", "is_reading", "kept_bytes", "upto")

    def __init__(self, upto: int) -> None:
        self.upto = self.head = upto
        self.is_reading = False
        self._kept: deque[Frame] = deque()
        self.kept_bytes = 0
        self._waiting: dict[int, Waiting] = {}
        self._quiet = 0

    def __repr__(self) -> str:
        return f"<Channel {self.upto}/{self.head}, {len(self._kept)} kept, {len(self._waiting)} waiting>"

    @property
    def wants_reading(self) -> bool:
        return self.head > self.upto and not self.is_reading

    def add(self, frames: Sequence[Frame], expected: int) -> None:
        """Take what was read after ``upto``, when up to ``expected`` was known to be there."""
        self.is_reading = False
        if frames:
            if frames[0].seq != self.upto + 1:
                # Pruned in between: those who are behind the gap read for themselves.
                self.forget()
            self._keep(frames)
            self.upto = frames[-1].seq
        elif expected > self.upto:
            self.forget()
            self.upto = expected
        self.head = max(self.head, self.upto)

    def forget(self) -> None:
        """Keep none: whoever asks for what was kept reads it from the store."""
        self._kept.clear()
        self.kept_bytes = 0

    def _keep(self, frames: Sequence[Frame]) -> None:
        self._kept.extend(frames)
        self.kept_bytes += sum(frame.size for frame in frames)
        while len(self._kept) > KEPT_FRAMES or self.kept_bytes > KEPT_BYTES:
            self.kept_bytes -= self._kept.popleft().size

    def news(self, after: int) -> News | None:
        """What there is after a number, None when that is to be waited for.

        News without frames: there are some, for the reader to read.
        """
        if after >= self.upto:
            return None
        if not self._kept or self._kept[0].seq > after + 1:
            return News(self.upto)
        first = after + 1 - self._kept[0].seq
        return News(self.upto, tuple(self._kept[i] for i in range(first, len(self._kept))))

    # --- those who wait -------------------------------------------------------------------------------------

    def wait(self, ticket: int, after: int, port: ReplyPort) -> None:
        self._quiet = 0
        self._waiting[ticket] = after, port

    def leave(self, ticket: int) -> Waiting | None:
        return self._waiting.pop(ticket, None)

    def leave_all(self) -> Iterator[tuple[int, Waiting]]:
        """Everybody, one after the other."""
        while self._waiting:
            yield self._waiting.popitem()

    def ready(self) -> Iterator[tuple[int, ReplyPort, News]]:
        """Those who need not wait any more; all at one place get the same answer, made once."""
        made: dict[int, News | None] = {}
        for ticket, (after, port) in tuple(self._waiting.items()):
            if after not in made:
                made[after] = self.news(after)
            if (news := made[after]) is not None:
                del self._waiting[ticket]
                yield ticket, port, news

    def is_over(self) -> bool:
        """Whether nobody has waited for this many rounds; each call is one."""
        self._quiet = 0 if self._waiting else self._quiet + 1
        return self._quiet > LINGER_LOOKS
