"""What runners are answered while the database server is alive and does not move."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest
import trio

from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.postgres import open_postgres_storage
from tests.worlds.cluster_template import put_cluster
from tests.worlds.http import HttpWorld, open_http_world_on

USAGE = {"input_tokens": 10, "cached_input_tokens": 0, "output_tokens": 5}


def family(of: int) -> list[int]:
    """The process and all that it has begun, by /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [of]
    for one in found:
        found += children.get(one, [])
    return found


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop every process of the server, and let them go on afterwards."""
    stopped = family(pid)
    for one in stopped:
        os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in stopped:
            os.kill(one, signal.SIGCONT)


def told(answer: httpx2.Response) -> tuple[int, str]:
    assert int(answer.headers["retry-after"]) >= 1
    return answer.status_code, answer.json()["error_code"]


async def test_a_frozen_database_is_named_as_the_cause_and_a_renewal_under_way_counts_once(
    tmp_path: Path,
) -> None:
    await put_cluster(tmp_path / "pg")
    async with (
        open_embedded_server(EmbeddedSettings(tmp_path / "pg", server={"fsync": "off"})) as server,
        open_postgres_storage(server.dsn) as storage,
        open_http_world_on(storage) as world,
    ):
        _, token, lease = await world.working()
        at = f"/v1/runners/me/leases/{lease['lease_id']}"
        batch = {"leases": [{"lease_id": lease["lease_id"], "fencing_token": 1, **USAGE}]}
        pid = int((server.data / "postmaster.pid").read_text().splitlines()[0])
        answers: dict[str, httpx2.Response] = {}

        async def ask(name: str, path: str, body: object = None) -> None:
            answers[name] = await (world.get(path, token) if body is None else world.post(path, body, token))

        with frozen(pid):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, "renew", f"{at}/renew", USAGE)
                nursery.start_soon(ask, "batch", "/v1/runners/me/leases:renew", batch)
                nursery.start_soon(ask, "ready", "/readyz")
                nursery.start_soon(ask, "memory", f"/v1/runners/me/memory/{lease['event']['zombie_id']}")
        assert told(answers["renew"]) == (503, "UZ-INTERNAL-001")

        [late] = answers["batch"].json()["results"]
        assert (late["status"], late["error_code"]) == (503, "UZ-INTERNAL-001")
        assert answers["ready"].status_code == 503
        assert told(answers["memory"]) == (503, "UZ-MEM-003")

        await _renewed_once(world, token, at)


async def _renewed_once(world: HttpWorld, token: str, at: str) -> None:
    """What was under way is kept or not, and either way its tokens are billed once."""
    again = await world.post(f"{at}/renew", USAGE, token)
    assert again.status_code == 200, again.text
    [lease] = await world.storage.fleet.live_leases(limit=10)
    assert at.endswith(str(lease.lease_id))
    rows = await world.storage.metering.list(world.installation.tenant_id, lease.event_id)
    assert [row.d_output_tokens for row in rows if row.d_output_tokens] == [USAGE["output_tokens"]]
    assert [row.slice_seq for row in rows] == list(range(1, again.json()["slice_seq"] + 1))


async def test_a_busy_actor_is_not_blamed_on_a_database_that_answers(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token, lease = await world.working()
    monkeypatch.setattr("sexton_http.routes.renewals.HOT_S", 0.0)
    answer = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, token)

    assert told(answer) == (503, "UZ-API-003")
