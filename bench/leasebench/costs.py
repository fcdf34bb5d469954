"""Processor time of a tree of processes, and flushes and commits as PostgreSQL counts them."""

import os
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from bench import machine

TICKS = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """What had been used up at one moment."""

    at_s: float
    service_s: float
    """The processor time of the server that was started, in s; 0 where the library is the whole service."""
    holder_s: float
    database_s: float
    flushes: int
    commits: int

    def since(self, before: "Spent") -> "Spent":
        """What was used up between.

        >>> Spent(9, 5, 4, 3, 20, 30).since(Spent(8, 4, 4, 1, 5, 10))
        Spent(at_s=1, service_s=1, holder_s=0, database_s=2, flushes=15, commits=20)
        """
        return Spent(
            self.at_s - before.at_s,
            self.service_s - before.service_s,
            self.holder_s - before.holder_s,
            self.database_s - before.database_s,
            self.flushes - before.flushes,
            self.commits - before.commits,
        )


def tree_s(root: int) -> float:
    """Processor time, in s, of a process, of all below it, and of those of its children that have ended."""
    children: dict[int, list[int]] = defaultdict(list)
    used: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(folder.name)
        children[int(fields[1])].append(pid)
        used[pid] = sum(int(fields[at]) for at in (11, 12, 13, 14)) / TICKS
    total, todo = 0.0, [root]
    while todo:
        pid = todo.pop()
        total += used.get(pid, 0.0)
        todo += children[pid]
    return total


FLUSHES = "SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal'"
COMMITS = "SELECT coalesce(sum(xact_commit), 0) FROM pg_stat_database"


def counted(dsn: str) -> tuple[int, int]:
    """Flushes of the write-ahead log and commits, both since the server began; PostgreSQL 18 or later.

    A backend tells its counts once a second at most, so two looks some seconds apart err by that much.
    """
    flushes, commits = machine.query(dsn, f"SELECT ({FLUSHES}), ({COMMITS})").strip().split("|")
    return int(flushes), int(commits)


def flushed(done: int, under_way: int, flushes: int) -> bool:
    """Whether there were as many flushes as durable answers need.

    One flush serves at most those that wait for it at that moment; twice that is allowed, since the counts of
    both ends come late.

    >>> flushed(done=10_000, under_way=32, flushes=900), flushed(done=10_000, under_way=32, flushes=20)
    (True, False)
    """
    return done <= 2 * under_way * max(flushes, 0)
