"""What a system must be able to do to be measured: one small class each."""

import importlib
import importlib.util
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple


class Lease(NamedTuple):
    """A claim as its holder knows it."""

    key: str
    """What is leased; the same text whoever holds it."""
    token: int | None = None
    """The fencing token; None where there is none."""
    handle: Any = None
    """Whatever the adapter needs to renew and report it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a holder works."""

    dsn: str
    """The database; through the proxy for a holder whose network is going to fail."""
    holder: str
    """A name of its own."""
    term_s: float
    """How long a lease lasts that is not renewed."""
    workers: int
    """Calls that may be under way at once."""
    most: int
    """Leases that this holder has at once."""
    first: int = 0
    """How many things the holders before it have put in and hold; for systems that grant one lease a key."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What ``ready`` and ``setup`` answered."""


class Adapter:
    """A lease service as its clients use it. Derive from it, one class in one file."""

    title: ClassVar[str] = ""
    does_not: ClassVar[tuple[str, ...]] = ()
    """What a reader must know before comparing it: unfenced, unmetered, no deadline."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Whose versions the page shows."""
    renews: ClassVar[bool] = True
    """Whether there is anything to renew."""
    backend: ClassVar[str] = "asyncio"
    """The event loop of its library: asyncio or trio."""
    workers: ClassVar[int] = 32
    """Loops in one holder while rates are measured."""
    batch: ClassVar[int] = 1
    """Leases that one call claims, renews or reports while rates are measured."""
    fixed_term_s: ClassVar[float | None] = None
    """The term, where the system cannot be told one."""

    def service(self, dsn: str, folder: Path) -> list[str]:  # noqa: ARG002 -- names for those who override it
        """Give the command of a server to start first; empty when there is none."""
        return []

    def ready(self, folder: Path) -> dict[str, Any] | None:  # noqa: ARG002
        """Facts about the server that was started, or None while it is not ready.

        ``address`` among them, as ``[host, port]``, is what the proxy stands before.
        """
        return {}

    async def setup(self, place: Place) -> dict[str, Any]:  # noqa: ARG002
        """Make tables and the like, once; answers facts for all holders, which must be JSON."""
        return {}

    async def open(self, place: Place) -> None:
        """Connect as this holder."""
        raise NotImplementedError

    async def fill(self, jobs: int) -> None:
        """Put that many things in that can be leased."""
        raise NotImplementedError

    async def claim(self, most: int) -> list[Lease]:
        """Take at most that many; it may wait for a moment for the first."""
        raise NotImplementedError

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        """Extend each by a term; False where that was refused."""
        raise NotImplementedError

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        """End each, as done; False where that was refused."""
        raise NotImplementedError

    async def keep_house(self) -> None:
        """Do what the system leaves to its application, once a second; nothing in most."""

    async def close(self) -> None:
        """Disconnect."""


def load(name: str) -> type[Adapter]:
    """The adapter of a file in ``adapters/``, by its name, or of any file, by its path.

    Raises LookupError when there is no such file, or no adapter of its own in it.
    """
    module = _module(name)
    found = [
        thing
        for _, thing in inspect.getmembers(module, inspect.isclass)
        if issubclass(thing, Adapter) and thing.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise LookupError(f"{name} holds {len(found)} adapters; there must be one")
    return found[0]


def _module(name: str) -> ModuleType:
    if not name.endswith(".py"):
        if name not in names():
            known = ", ".join(names())
            raise LookupError(f"no adapter {name}; there are {known}, or give a path that ends in .py")
        return importlib.import_module(f"bench.leasebench.adapters.{name}")
    spec = importlib.util.spec_from_file_location(f"leasebench_{Path(name).stem}", name)
    if spec is None or spec.loader is None or not Path(name).is_file():
        raise LookupError(f"no adapter at {name}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    """All adapters that are here."""
    return sorted(path.stem for path in (Path(__file__).parent / "adapters").glob("*.py"))
