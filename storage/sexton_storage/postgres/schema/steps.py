"""The numbered SQL files, and what their first lines say about how each is run."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

_NAME: Final = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_MARK: Final = re.compile(r"-- (serves-from|transaction): *(.*)")
_REPEAT: Final = "-- repeat"
_INDEX: Final = re.compile(
    r"create\s+(?:unique\s+)?index\s+concurrently\s+if\s+not\s+exists\s+([a-z0-9_]+)\s+on\s+([a-z0-9_]+)",
    re.IGNORECASE,
)


class BadStep(ValueError):
    """The first lines of a file say what cannot be."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a step that runs outside a transaction."""

    sql: str
    repeats: bool = False
    """Run it again until it changes no row: a large table is filled in pages."""

    @property
    def index(self) -> tuple[str, str] | None:
        """The index that it builds concurrently, and the table.

        >>> Statement("create index concurrently if not exists a_b on a (b)").index
        ('a_b', 'a')
        >>> Statement("alter table a validate constraint c").index
        """
        found = _INDEX.search(self.sql)
        return None if found is None else (found[1], found[2])


@dataclass(frozen=True, slots=True)
class Migration:
    r"""One step.

    >>> step = Migration(60, "0060_a.sql", "-- serves-from: 0058\n-- Why.\n\ncreate table a ();")
    >>> step.serves_from, step.in_transaction
    (58, True)
    """

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()

    @property
    def serves_from(self) -> int:
        """The newest step that a release must know to work on the schema after this one.

        A step that does not say so serves only releases that know it. Raises BadStep.

        >>> Migration(60, "0060_a.sql", "drop table a").serves_from
        60
        """
        said = self._marks().get("serves-from")
        if said is None:
            return self.version
        if not said.isdecimal() or not 0 < int(said) <= self.version:
            raise BadStep(f"{self.name}: serves-from is the number of this step or of an earlier one")
        return int(said)

    @property
    def in_transaction(self) -> bool:
        """Whether the step is one transaction; else each of its statements is one. Raises BadStep."""
        said = self._marks().get("transaction", "one")
        if said not in {"one", "none"}:
            raise BadStep(f"{self.name}: transaction is one or none")
        return said == "one"

    @property
    def statements(self) -> Sequence[Statement]:
        r"""The statements of a step outside a transaction: each ends with a semicolon at the end of a line.

        >>> step = Migration(1, "0001_a.sql", "-- Why.\n\n-- repeat\nupdate a\n set b = 1;\ndrop table c;\n")
        >>> [(s.sql.split()[0], s.repeats) for s in step.statements]
        [('update', True), ('drop', False)]
        """
        found = []
        for piece in re.split(r";[ \t]*(?:\n|$)", self.sql):
            lines = [line for line in piece.splitlines() if line.strip()]
            code = "\n".join(line for line in lines if not line.startswith("--"))
            if code:
                found.append(Statement(code, repeats=_REPEAT in lines))
        return found

    def _marks(self) -> dict[str, str]:
        marks = {}
        for line in self.sql.splitlines():
            if not line.startswith("--"):
                break
            if found := _MARK.fullmatch(line):
                marks[found[1]] = found[2].strip()
        return marks


def shipped_migrations() -> Sequence[Migration]:
    """Read the files of this release, in order."""
    folder = resources.files("sexton_storage.migrations")
    found = [(_NAME.fullmatch(f.name), f) for f in folder.iterdir()]
    return sorted(
        (Migration(int(m[1]), f.name, f.read_text(encoding="utf-8")) for m, f in found if m),
        key=lambda m: m.version,
    )
