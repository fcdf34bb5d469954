"""Fixtures of the front end's tests."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sexton_http import app
from sexton_http.gateway.services import Services, make_services
from sexton_http.routes.table import OPERATIONS
from sexton_http.wire.tls import Tls
from tests.worlds.answer_checks import SEEN
from tests.worlds.certificates import make_certificate
from tests.worlds.http import HttpWorld, open_http_world

LAST = "test_every_declared_code_was_seen"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One test looks back at all others of the folder, so it comes after them."""
    items.sort(key=lambda item: item.name == LAST)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where several processes share the tests, have each tell the first one what it has seen."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None and is_whole(session):
        output["declared_codes"], output["seen_codes"] = sorted(declared_codes()), sorted(seen_codes())


def is_whole(session: pytest.Session) -> bool:
    """Whether all tests of this folder run."""
    chosen = session.config.option
    if (
        chosen.keyword
        or chosen.markexpr
        or chosen.deselect
        or any("::" in arg for arg in session.config.args)
    ):
        return False
    here = Path(__file__).parent
    return {path.name for path in here.glob("test_*.py")} <= {
        item.path.name for item in session.items if item.path.parent == here
    }


def declared_codes() -> set[str]:
    """Method, path and code of each problem that a route declares."""
    return {f"{row.method} {row.path} {code}" for row in OPERATIONS for code in row.all_codes()}


def seen_codes() -> set[str]:
    """The same of each problem that a route has answered with in this process."""
    return {" ".join(seen) for seen in SEEN}


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    """A server with one tenant, one workspace and the admin's key."""
    async with open_http_world() as opened:
        yield opened


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> list[Services]:
    """What the servers of a test keep inside, once they are open."""
    made: list[Services] = []

    def make(*args: Any) -> Services:
        made.append(make_services(*args))
        return made[-1]

    monkeypatch.setattr(app, "make_services", make)
    return made


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    """For localhost and its address, of nobody in particular."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "localhost", "127.0.0.1")


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, certificate: Tls) -> Tls | None:
    """Whoever asks for it is run twice: over a plain socket, and over TLS."""
    return certificate if request.param == "tls" else None
