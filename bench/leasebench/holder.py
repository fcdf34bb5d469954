"""The process that holds leases: ``python -m bench.leasebench.holder SPEC``, steered by lines on its input.

It runs on the interpreter of its adapter, so it needs nothing but anyio and what that adapter imports. It
says a JSON object a line; after one with ``mark`` it waits for a line before it goes on.
"""

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio

from bench.leasebench.adapter import Adapter, Place, load
from bench.leasebench.rates import measure_rates
from bench.leasebench.trial import Referee, fail, survive

READY_S = 90.0


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def heard() -> str:
    """The next line of the referee; raises EOFError when it has gone."""
    line: str = await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    if not line:
        raise EOFError("the referee has gone")
    return line.strip()


async def mark(name: str, **what: Any) -> str:
    """Say where we are, and wait until the referee has looked at its clocks and counters."""
    say(mark=name, **what)
    return await heard()


async def play(spec: Mapping[str, Any]) -> None:
    adapter = load(spec["adapter"])()
    place = Place(**spec["place"])
    if spec["role"] == "describe":
        say(**describe(adapter, place, Path(spec["folder"])))
        return
    if spec["role"] == "setup":
        facts = await until_ready(adapter, Path(spec["folder"]))
        say(facts=facts | await adapter.setup(replace(place, facts=facts)))
        return
    await adapter.open(place)
    try:
        match spec["role"]:
            case "rates":
                await measure_rates(adapter, place, spec["seconds"], mark, spec["folder"])
            case "fails":
                await fail(adapter, place, spec["leases"], Referee(mark, heard), Path(spec["log"]))
            case "survives":
                await survive(adapter, place, spec["leases"], Referee(mark, heard), Path(spec["log"]))
            case other:
                raise ValueError(other)
    finally:
        await adapter.close()


def describe(adapter: Adapter, place: Place, folder: Path) -> dict[str, Any]:
    """What the referee, in whose interpreter an adapter may not load, has to know of it."""
    return {
        "title": adapter.title,
        "does_not": adapter.does_not,
        "workers": adapter.workers,
        "batch": adapter.batch,
        "renews": adapter.renews,
        "fixed_term_s": adapter.fixed_term_s,
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in adapter.packages},
        },
        "service": adapter.service(place.dsn, folder),
    }


async def until_ready(adapter: Adapter, folder: Path) -> dict[str, Any]:
    """Wait for the server that was started, if there is one; raises TimeoutError."""
    with anyio.fail_after(READY_S):
        while (facts := adapter.ready(folder)) is None:  # noqa: ASYNC110 -- another process writes the file
            await anyio.sleep(0.02)
    return facts


def main() -> None:
    spec = json.loads(sys.argv[1])
    anyio.run(play, spec, backend=load(spec["adapter"]).backend)


if __name__ == "__main__":
    main()
