"""A file of 1 GiB from a run to the server and back, and what the memory of both sides grows by meanwhile.

The file goes through the runner's own code, from the program that runs inside a sandbox on, to a server that
was started as its user starts it. The server's database is another process. With BENCH_FILES_STORE and
BENCH_S3_ENDPOINT the file goes on to that store, and is read again from there.
"""

import hashlib
import os
import random
import resource
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any, cast

import httpx2
import msgspec
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import open_client
from bench.product import payload
from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.redact import Redactor
from sexton_runner.run import Run
from sexton_runner.run_files.file_upload import send_files
from sexton_runner.run_files.files_pipe import SENDER
from sexton_runner.timing import Timing
from sexton_runner.wire import Lease

MIB = 2**20
SIZE = harness.size("FILE_MIB", 1024) * MIB
FORM_SIZE = min(harness.size("FORM_MIB", 96) * MIB, SIZE)
"""What a request of 30 s carries on a slow machine, too."""
BLOCK = random.Random(1).randbytes(MIB)
RENEW_S = 10.0
USED = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
CONTROL_S = 30.0
MAX_GROWTH_MIB = 64
STORE, ENDPOINT = (os.environ.get(f"BENCH_{name}", "") for name in ("FILES_STORE", "S3_ENDPOINT"))
MOVED = 'sexton_file_moves_total{outcome="moved"} 1.0'
MOVE_S = 600.0


def write_file(folder: Path) -> str:
    """Write the file; every MiB of it is another. Give its SHA-256."""
    digest = hashlib.sha256()
    (folder / "out").mkdir()
    with (folder / "out" / "large.bin").open("wb") as file:
        for number in range(SIZE // MIB):
            piece = number.to_bytes(8, "big") + BLOCK[8:]
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def own_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def server_peak(pid: int) -> int:
    return machine.resident_bytes(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    """The peak is what it is now; it was higher while the server started."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def upload(plane: ControlPlane, lease: Lease, folder: Path) -> dict[str, Any]:
    """Send the folder as a runner does; give what is kept."""
    run = SimpleNamespace(
        live=SimpleNamespace(lease=lease),
        plane=plane,
        redactor=Redactor({"canary": "what no file of this holds"}),
        rng=random.Random(1),
        timing=Timing(),
    )
    words = [sys.executable, "-I", str(SENDER), str(2 * SIZE), "walled"]
    async with trio.open_nursery() as nursery:

        async def renew() -> None:
            while True:
                await trio.sleep(RENEW_S)
                await plane.renew(lease.lease_id, USED)

        nursery.start_soon(renew)
        process = await trio.lowlevel.open_process(words, cwd=folder, stdout=-1)
        assert process.stdout is not None
        left = await send_files(cast("Run", run), process.stdout)
        await process.wait()
        nursery.cancel_scope.cancel()
    assert left.notes == [], left.notes
    [kept] = left.kept
    return kept


async def download(http: httpx2.AsyncClient, path: str) -> str:
    digest = hashlib.sha256()
    async with http.stream("GET", path) as answer:
        answer.raise_for_status()
        async for piece in answer.aiter_bytes():
            digest.update(piece)
    return digest.hexdigest()


async def through_store(http: httpx2.AsyncClient, path: str, sha256: str) -> float:
    """Wait until the store has the file, and read it from there; the seconds that this took."""
    with trio.fail_after(MOVE_S):
        while True:
            if MOVED in (await http.get("/metrics")).text:
                break
            await trio.sleep(0.5)
    began = perf_counter()
    assert await download(http, path) == sha256
    return perf_counter() - began


async def send_form(http: httpx2.AsyncClient, path: str, file: Path) -> None:
    """Send a message with the first ``FORM_SIZE`` bytes of the file in one form, as ``curl -F`` does."""
    head = (
        b'--bench\r\ncontent-disposition: form-data; name="message"\r\n\r\nLook.\r\n'
        b'--bench\r\ncontent-disposition: form-data; name="file"; filename="large.bin"\r\n\r\n'
    )
    end = b"\r\n--bench--\r\n"

    async def form() -> AsyncIterator[bytes]:
        yield head
        with file.open("rb") as content:
            for _ in range(FORM_SIZE // MIB):
                yield content.read(MIB)
        yield end

    headers = {
        "content-type": "multipart/form-data; boundary=bench",
        "content-length": str(len(head) + FORM_SIZE + len(end)),
    }
    answer = await http.post(path, content=form(), headers=headers)
    answer.raise_for_status()


async def measure() -> dict[str, Any]:
    with open_client() as client, tempfile.TemporaryDirectory(prefix="sexton-files-") as name:
        folder = Path(name)
        sha256 = write_file(folder)
        async with server.open_folder() as process:
            store = ("--files-store", STORE, "--s3-endpoint", ENDPOINT) if STORE else ()
            site = await process.start(*server.UNHURRIED, *store)
            about = machine.describe_with(process.database_url())
            agents = await server.make_agents(client, site, 1)
            [token] = await server.make_runners(client, site, 1, 1)
            await server.wake(client, site, server.deliveries_of(site, agents, payload()), 1)
            base_url = f"http://{site.host}"
            async with open_http(base_url, token, CONTROL_S) as wire:
                plane = ControlPlane(wire, Outage(trio.current_time))
                polled = await plane.poll(1, 5.0, 5.0)
                lease = msgspec.json.decode(polled.leases[0], type=Lease)
                forget_peak(process.pid)
                served, sent = server_peak(process.pid), own_peak()
                began = perf_counter()
                kept = await upload(plane, lease, folder)
                up_s = perf_counter() - began
                after_up = server_peak(process.pid)
            runner_growth = own_peak() - sent
            async with open_http(base_url, site.api_key, CONTROL_S) as http:
                began = perf_counter()
                path = f"{site.workspace}/artefacts/{kept['artefact_id']}/content"
                assert await download(http, path) == kept["sha256"] == sha256
                down_s = perf_counter() - began
                from_store_s = await through_store(http, path, sha256) if STORE else None
                after_down = server_peak(process.pid)
                began = perf_counter()
                messages = f"{site.workspace}/zombies/{agents[0]}/messages"
                await send_form(http, messages, folder / "out" / "large.bin")
                form_s = perf_counter() - began
            after_form = server_peak(process.pid)
    growth = harness.at_most(MAX_GROWTH_MIB, "MiB")
    figures = [
        harness.Figure("upload", harness.once(SIZE / MIB / up_s), "MiB/s"),
        harness.Figure("download", harness.once(SIZE / MIB / down_s), "MiB/s"),
        harness.Figure(
            f"growth of the server, {SIZE // MIB:,} MiB in",
            harness.once((after_up - served) / MIB),
            "MiB",
            budgets=(growth,),
        ),
        harness.Figure(
            "growth of the server, in and out",
            harness.once((after_down - served) / MIB),
            "MiB",
            budgets=(growth,),
        ),
        harness.Figure(
            f"growth of the server, with a form of {FORM_SIZE // MIB} MiB",
            harness.once((after_form - served) / MIB),
            "MiB",
            budgets=(growth,),
        ),
        harness.Figure("form", harness.once(FORM_SIZE / MIB / form_s), "MiB/s"),
        harness.Figure(
            "growth of the runner's side", harness.once(runner_growth / MIB), "MiB", budgets=(growth,)
        ),
    ]
    if from_store_s is not None:
        figures.append(
            harness.Figure("download from the store", harness.once(SIZE / MIB / from_store_s), "MiB/s")
        )
    return harness.report("files", about, figures)


if __name__ == "__main__":
    print(harness.line(trio.run(measure)))
