"""Decides whether a release and a schema go together, from what ran and what the release knows."""

from collections.abc import Sequence
from dataclasses import dataclass

from sexton_storage.postgres.schema.steps import Migration


@dataclass(frozen=True, slots=True)
class Ran:
    """A step that ran on a database, as the database tells it."""

    version: int
    name: str
    sha256: str
    serves_from: int | None = None
    """None: it ran before steps told it."""

    @property
    def needs(self) -> int:
        return self.version if self.serves_from is None else self.serves_from


@dataclass(frozen=True, slots=True)
class Fits:
    """The release works here once what is pending has run."""

    pending: tuple[Migration, ...] = ()
    ahead: str | None = None
    """The newest step of the database, where this release does not know it and serves all the same."""


@dataclass(frozen=True, slots=True)
class TooOld:
    """The schema has left this release behind."""

    newest: str
    needs: int
    knows: int


@dataclass(frozen=True, slots=True)
class Differs:
    """A step ran in another form than this release has it."""

    name: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A newer release went on from here, and a step of ours never ran."""

    name: str
    newest: str


Fit = Fits | TooOld | Differs | Gap


def judge(ran: Sequence[Ran], migrations: Sequence[Migration]) -> Fit:
    """Compare what ran with what this release knows.

    >>> one, two = Migration(1, "0001_a.sql", "a"), Migration(2, "0002_b.sql", "b")
    >>> judge([Ran(1, one.name, one.sha256)], [one, two]).pending == (two,)
    True

    A release goes on serving on a newer schema for as long as each step that it does not know serves it.

    >>> judge([Ran(1, one.name, one.sha256), Ran(2, "0002_b.sql", "", 1)], [one])
    Fits(pending=(), ahead='0002_b.sql')
    >>> judge([Ran(1, one.name, one.sha256), Ran(2, "0002_b.sql", "")], [one])
    TooOld(newest='0002_b.sql', needs=2, knows=1)
    >>> judge([Ran(1, one.name, "another")], [one, two])
    Differs(name='0001_a.sql')
    """
    known = {m.version: m for m in migrations}
    knows = max(known)
    newer = [step for step in ran if step.version > knows]
    if newer and (needs := max(step.needs for step in newer)) > knows:
        return TooOld(newer[-1].name, needs, knows)
    for step in ran:
        if step.version <= knows and (step.version not in known or known[step.version].sha256 != step.sha256):
            return Differs(step.name)
    done = {step.version for step in ran}
    pending = tuple(m for m in migrations if m.version not in done)
    if newer and pending:
        return Gap(pending[0].name, newer[-1].name)
    return Fits(pending, newer[-1].name if newer else None)
