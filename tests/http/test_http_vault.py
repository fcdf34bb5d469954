"""The master key is changed while everything goes on, whatever is killed on the way."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sexton_actors.protocol.vault import Reseal
from sexton_actors.secrets import credential_identity
from sexton_actors.vault.actor import RETIRE_AFTER_MS, VaultKeeper
from sexton_storage.masterkeys import load_or_make_keys
from sexton_storage.memory import MemoryStorage, open_memory_storage
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.credentials import Credential
from sexton_storage.startup import StartupFailed
from sexton_storage.stores import Storage
from sexton_storage.vault import KEY_FILE, KEY_VARIABLE, SEALING_VARIABLE, Vault, open_vault, version_of
from tests.http.test_http_own_codes import code
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import START_MS

STATUS, ROTATIONS = "/v1/admin/vault", "/v1/admin/vault/rotations"


@asynccontextmanager
async def server(storage: Storage, vault: Vault) -> AsyncIterator[HttpWorld]:
    async with open_http_world_on(storage, vault=vault) as world:
        yield world


async def keep(world: HttpWorld, count: int) -> None:
    for number in range(count):
        body = {"name": f"c{number}", "data": {"value": f"secret {number}"}}
        assert (await world.post(f"{world.ws}/credentials", body)).status_code == 201


async def opened(world: HttpWorld, count: int) -> list[object]:
    workspace_id = world.installation.workspace_id
    found = [await world.actors_world.secrets.open(workspace_id, f"c{number}") for number in range(count)]
    return [data and data["value"] for data in found]


async def rotated(world: HttpWorld) -> dict[str, object]:
    answer = await world.post(ROTATIONS, token=world.admin_token())
    assert answer.status_code == 202, answer.text
    await rounds(world)
    state: dict[str, object] = (await world.get(STATUS, world.admin_token())).json()
    return state


async def rounds(world: HttpWorld) -> None:
    """Let the keeper go on until it has nothing more to do."""
    while True:
        await world.system.ask("vault_keeper", "", Reseal())
        if not (await world.get(STATUS, world.admin_token())).json()["stale"]:
            return


async def test_all_secrets_come_under_a_new_key_and_the_old_one_is_forgotten_later(
    tmp_path: Path, postgres_storage: PostgresStorage
) -> None:
    async with server(postgres_storage, open_vault(tmp_path, {})) as world:
        await keep(world, 5)
        before = (await world.get(STATUS, world.admin_token())).json()
        assert before["keys"] == [{"version": 1, "secrets": 7, "seals": True}], "the installation has two"

        state = await rotated(world)
        assert state["keys"] == [
            {"version": 1, "secrets": 0, "seals": False},
            {"version": 2, "secrets": 7, "seals": True},
        ]
        assert await opened(world, 5) == [f"secret {number}" for number in range(5)]
        assert open_vault(tmp_path, {}).versions == (1, 2), "it may have sealed what is still under way"
    async with server(postgres_storage, open_vault(tmp_path, {})) as again:
        assert await opened(again, 5) == [f"secret {number}" for number in range(5)]


async def test_the_old_key_is_forgotten_when_nothing_has_used_it_for_a_while(tmp_path: Path) -> None:
    now = [START_MS]
    async with (
        open_memory_storage(clock=lambda: now[0]) as storage,
        server(storage, open_vault(tmp_path, {})) as world,
    ):
        await keep(world, 3)
        await rotated(world)
        now[0] += RETIRE_AFTER_MS - 1
        await world.system.ask("vault_keeper", "", Reseal())
        assert open_vault(tmp_path, {}).versions == (1, 2)

        # Somebody who waited too long comes with the old key: everything starts over.
        late = Vault({1: _key(tmp_path, 1)}).seal(b'{"value":"late"}', identity(world, "late"))
        await storage.credentials.put(Credential(world.installation.workspace_id, "late", late, 0, 0))
        now[0] += 1
        await world.system.ask("vault_keeper", "", Reseal())
        assert open_vault(tmp_path, {}).versions == (1, 2)

        for _ in range(2):
            await world.system.ask("vault_keeper", "", Reseal())
            now[0] += RETIRE_AFTER_MS
        await world.system.ask("vault_keeper", "", Reseal())
        assert open_vault(tmp_path, {}).versions == (2,)

        kept = await world.actors_world.secrets.open(world.installation.workspace_id, "late")
        assert kept == {"value": "late"}


def identity(world: HttpWorld, name: str) -> bytes:
    return credential_identity(world.installation.workspace_id, name)


def _key(folder: Path, version: int) -> bytes:
    return load_or_make_keys(folder / KEY_FILE)[version]


@pytest.mark.parametrize("survived", range(4))
async def test_a_rotation_that_was_killed_goes_on_with_the_next_start(tmp_path: Path, survived: int) -> None:
    async with open_memory_storage(clock=lambda: START_MS) as storage:
        async with server(storage, open_vault(tmp_path, {})) as world:
            await keep(world, 3)
            sealed_by(storage, 1)
            vault = open_vault(tmp_path, {})
            vault.rotate()
            for number in range(survived):
                row = await storage.credentials.load(world.installation.workspace_id, f"c{number}")
                if row is not None:
                    await storage.credentials.reseal(row, vault.reseal(row.sealed, identity(world, row.name)))
        async with server(storage, open_vault(tmp_path, {})) as world:
            assert await opened(world, 3) == ["secret 0", "secret 1", "secret 2"]

            state = await rotated(world)
            assert [key["version"] for key in state["keys"] if key["secrets"]] in ([2], [3])  # type: ignore[attr-defined]  # a document
            assert state["stale"] == 0
            assert await opened(world, 3) == ["secret 0", "secret 1", "secret 2"]


def sealed_by(storage: MemoryStorage, version: int) -> None:
    assert {version_of(row.sealed) for row in storage.tables.credentials.values()} == {version}


async def test_a_secret_that_is_replaced_meanwhile_is_not_put_back(tmp_path: Path) -> None:
    async with open_memory_storage(clock=lambda: START_MS) as storage:
        vault = open_vault(tmp_path, {})
        async with server(storage, vault) as world:
            await keep(world, 1)
            (old,) = storage.tables.credentials.values()
            body = {"name": "c0", "data": {"value": "newer"}}
            await world.post(f"{world.ws}/credentials", body)
            vault.rotate()

            assert not await storage.credentials.reseal(old, vault.reseal(old.sealed, identity(world, "c0")))
            assert await opened(world, 1) == ["newer"]


async def test_a_secret_that_does_not_open_keeps_the_keys_and_stops_nobody(tmp_path: Path) -> None:
    now = [START_MS]
    async with (
        open_memory_storage(clock=lambda: now[0]) as storage,
        server(storage, open_vault(tmp_path, {})) as world,
    ):
        await keep(world, 2)
        place = (world.installation.workspace_id, "c0")
        row = storage.tables.credentials[place]
        broken = row.sealed[:-1] + bytes([row.sealed[-1] ^ 1])
        head = bytearray(broken)
        head[20] ^= 1
        storage.tables.credentials[place] = Credential(*place, bytes(head), 0, 0)
        await world.post(ROTATIONS, token=world.admin_token())
        for _ in range(3):
            await world.system.ask("vault_keeper", "", Reseal())
            now[0] += RETIRE_AFTER_MS
        state = (await world.get(STATUS, world.admin_token())).json()
        assert state["stale"] == 1
        assert open_vault(tmp_path, {}).versions == (1, 2)

        data = await world.actors_world.secrets.open(world.installation.workspace_id, "c1")
        assert data == {"value": "secret 1"}


async def test_keys_that_the_operator_gives_are_changed_by_him(tmp_path: Path) -> None:
    one, two = (f"{version}:{key}" for version, key in ((1, "A" * 43 + "="), (2, "B" * 42 + "A=")))
    async with open_memory_storage(clock=lambda: START_MS) as storage:
        async with server(storage, open_vault(tmp_path, {KEY_VARIABLE: one})) as world:
            await keep(world, 2)
            refused = await code(world, "POST", ROTATIONS, world.admin_token(), json={})

            assert refused == (400, "UZ-REQ-001")
        both = {KEY_VARIABLE: f"{one},{two}"}
        async with server(storage, open_vault(tmp_path, {**both, SEALING_VARIABLE: "1"})) as world:
            await rounds(world)
            sealed_by(storage, 1)
        async with server(storage, open_vault(tmp_path, both)) as world:
            await rounds(world)
            state = (await world.get(STATUS, world.admin_token())).json()
            assert (state["source"], state["stale"]) == ("environment", 0)

            sealed_by(storage, 2)
        async with server(storage, open_vault(tmp_path, {KEY_VARIABLE: two})) as world:
            assert await opened(world, 2) == ["secret 0", "secret 1"]
    with pytest.raises(StartupFailed, match=SEALING_VARIABLE):
        open_vault(tmp_path, {**both, SEALING_VARIABLE: "3"})


async def test_without_a_vault_there_is_none_to_show(world: HttpWorld) -> None:
    assert await code(world, "GET", STATUS, world.admin_token()) == (404, "UZ-REQ-003")
    assert await code(world, "POST", ROTATIONS, world.admin_token(), json={}) == (404, "UZ-REQ-003")
    assert VaultKeeper.kind == "vault_keeper"


def test_two_servers_with_one_file_seal_with_the_same_key(tmp_path: Path) -> None:
    one, other = open_vault(tmp_path, {}), open_vault(tmp_path, {})
    one.rotate()
    assert version_of(other.seal(b"s", b"i")) == 2
    assert one.open(other.seal(b"s", b"i"), b"i") == b"s"

    one.rotate()
    assert other.open(one.seal(b"s", b"i"), b"i") == b"s"
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600

    (tmp_path / KEY_FILE).chmod(0o644)
    os.utime(tmp_path / KEY_FILE)
    with pytest.raises(StartupFailed, match="read by others"):
        one.seal(b"s", b"i")
