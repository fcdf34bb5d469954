"""Fixtures that the tests of every wing may ask for: storage in memory and in PostgreSQL."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Queue

import asyncpg
import pytest
import trio
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from sexton_storage.embedded import EmbeddedServer, EmbeddedSettings, open_embedded_server
from sexton_storage.embedded.roles import as_superuser
from sexton_storage.memory import Faults, MemoryStorage, open_memory_storage
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from tests.shared_collection import SharedCollection
from tests.sharing import ByFile
from tests.thorough import examples
from tests.worlds.cluster_template import PLACE_VARIABLE, put_cluster
from tests.worlds.other_postgres import check_release, take_other_postgres
from tests.worlds.plain_logs import log_plainly

START_MS = 1_732_060_800_000
"""Where a test's clock begins: 2024-11-20 00:00 UTC."""
THROW_AWAY = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "shared_buffers": "32MB"}
"""The server of a test session loses its data anyway; tests about durability start one of their own."""
COLLECT_AFTER = (50_000, 20, 50)
"""As a server has it: thousands of modules and tests are no garbage, and are looked through rarely."""
EMPTY = """
SET session_replication_role = replica;
DO $$
DECLARE
    one record;
    has_rows boolean;
BEGIN
    FOR one IN SELECT oid::regclass AS name FROM pg_class
                WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
                  AND relname <> 'schema_migrations' LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s)', one.name) INTO has_rows;
        IF has_rows THEN
            EXECUTE format('DELETE FROM %s', one.name);
        END IF;
    END LOOP;
    FOR one IN SELECT format('%I.%I', schemaname, sequencename)::regclass AS name FROM pg_sequences
                WHERE last_value IS NOT NULL LOOP
        PERFORM setval(one.name, 1, false);
    END LOOP;
END
$$
"""
"""Quicker than to make another database. Meanwhile triggers sleep, and references are not kept."""
_numbers = count(1)
_DECLARED_CODES: set[str] = set()
_SEEN_CODES: set[str] = set()


def pytest_configure() -> None:
    take_other_postgres()
    gc.set_threshold(*COLLECT_AFTER)
    log_plainly()
    # How fast a machine draws examples, or tries one, is nothing that a test is about.
    settings.register_profile(
        "sexton",
        settings(),
        max_examples=examples(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("sexton")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Where several processes would each collect all tests, have them share the work of it."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return (yield)
    # Before they are imported: what differs in a case of a recipe is shown as in a test.
    pytest.register_assert_rewrite("tests.recipes")
    place = Path(config.option.basetemp).parent / "collected"
    number = int(worker["workerid"].removeprefix("gw"))
    config.pluginmanager.register(SharedCollection(place, number, worker["workercount"]))
    collected = yield
    session.testscollected = len(session.items)
    return collected


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def cluster_template(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where the servers of this run find the files of their databases."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    os.environ[PLACE_VARIABLE] = str(shared / "cluster")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController) -> None:
    """Collect what the tests of tests/http have seen in each process."""
    told = getattr(node, "workeroutput", {})
    _DECLARED_CODES.update(told.get("declared_codes", ()))
    _SEEN_CODES.update(told.get("seen_codes", ()))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run whose processes have together not seen every code that a route declares."""
    if exitstatus == pytest.ExitCode.OK and _DECLARED_CODES - _SEEN_CODES:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    unseen = sorted(_DECLARED_CODES - _SEEN_CODES)
    if unseen:
        terminalreporter.section("declared codes that no test has seen")
        terminalreporter.line("\n".join(unseen))


@dataclass(slots=True)
class TestClock:
    """A clock that stands until it is moved; Unix ms."""

    __test__ = False
    now: int = START_MS

    def __call__(self) -> int:
        return self.now

    def advance(self, ms: int) -> None:
        self.now += ms


@pytest.fixture
def database_clock() -> TestClock:
    """The clock of ``memory_storage``, to be moved by the test."""
    return TestClock()


@pytest.fixture
def storage_faults() -> Faults:
    """The misfortunes of ``memory_storage``, to be ordered by the test."""
    return Faults()


@pytest.fixture
async def memory_storage(database_clock: TestClock, storage_faults: Faults) -> AsyncIterator[MemoryStorage]:
    """An empty storage in memory."""
    async with open_memory_storage(clock=database_clock, faults=storage_faults) as storage:
        yield storage


# --- PostgreSQL ---------------------------------------------------------------------------------------------


class _SessionServer:
    """One embedded server for all tests, kept by a trio loop of its own in a thread."""

    def __init__(self, base: Path) -> None:
        self._settings = EmbeddedSettings(base, server=THROW_AWAY)
        self._started: Queue[EmbeddedServer | BaseException] = Queue()
        self._stop = trio.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._thread = threading.Thread(target=trio.run, args=(self._serve,), daemon=True)

    def start(self) -> EmbeddedServer:
        self._thread.start()
        started = self._started.get()
        if isinstance(started, BaseException):
            raise started
        return started

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        try:
            await put_cluster(self._settings.base)
            async with open_embedded_server(self._settings) as server:
                # The server's own database, migrated and left alone, is the template of every test's.
                async with open_postgres_storage(server.dsn):
                    pass
                self._started.put(server)
                await self._stop.wait()
        except BaseException as error:
            self._started.put(error)
            raise

    def stop(self) -> None:
        if self._token is not None:
            self._token.run_sync_soon(self._stop.set)
        self._thread.join()


@pytest.fixture(scope="session")
def embedded_server(
    cluster_template: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A running server; its database ``sexton`` is a migrated template and not to be written to."""
    del cluster_template
    keeper = _SessionServer(tmp_path_factory.mktemp("postgres"))
    server = keeper.start()
    check_release(server.data)
    yield server
    keeper.stop()


async def _command(dsn: str, command: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(command)
    finally:
        await connection.close()


@contextmanager
def _fresh_database(embedded_server: EmbeddedServer) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    maintenance = embedded_server.superuser_dsn
    create = f"CREATE DATABASE {name} TEMPLATE sexton OWNER sexton STRATEGY file_copy"
    asyncio.run(_command(maintenance, create))
    yield embedded_server.dsn.replace("/sexton?", f"/{name}?")
    asyncio.run(_command(maintenance, f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def postgres_dsn(embedded_server: EmbeddedServer) -> Iterator[str]:
    """The address of a fresh, migrated database."""
    with _fresh_database(embedded_server) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def module_dsn(embedded_server: EmbeddedServer) -> Iterator[str]:
    """The address of a database that the tests of a module share."""
    with _fresh_database(embedded_server) as dsn:
        yield dsn


@pytest.fixture
def emptied_dsn(module_dsn: str) -> Iterator[str]:
    """The address of a migrated database without rows, for a test that leaves its schema as it is."""
    yield module_dsn
    asyncio.run(_command(as_superuser(module_dsn), EMPTY))


@pytest.fixture
def quick_dsn(request: pytest.FixtureRequest) -> str:
    """That of ``postgres_dsn`` where the test asks for it as well, else of ``emptied_dsn``."""
    own = "postgres_dsn" in request.fixturenames
    dsn: str = request.getfixturevalue("postgres_dsn" if own else "emptied_dsn")
    return dsn


@pytest.fixture
async def postgres_storage(quick_dsn: str) -> AsyncIterator[PostgresStorage]:
    """An empty storage in PostgreSQL."""
    async with open_postgres_storage(quick_dsn) as storage:
        yield storage
