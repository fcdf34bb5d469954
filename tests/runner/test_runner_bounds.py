"""What a run may have: as an operator allows it and an agent asks for it, and what is said when it is met."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sexton_runner.errors import BadSettings
from sexton_runner.run_bounds import TooMuch, allotted, most_of, read_bounds
from sexton_runner.sandbox.cgroup import Layout, find_layout
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import make_sandbox
from sexton_runner.settings import SandboxTier
from sexton_runner.tool_settings import McpServer, ToolSettings
from sexton_runner.wire import Resources
from tests.fakes.control_plane import Fault, open_plane
from tests.worlds.runner import running, settings_for
from tests.worlds.sandbox import Cage

MIB = 1 << 20
LIMITS = Limits(wall_s=20, memory_bytes=256 * MIB, pids=32)


@pytest.mark.parametrize(
    "text",
    ["cpu", "cpu=", "cpu=two", "cpu=0", "memory=5", "memory=5GB", "disk=1h", "wall=3", "gpu=1", "pids=4s"],
)
def test_bounds_that_cannot_be_read_are_told_by_the_option_that_holds_them(text: str) -> None:
    with pytest.raises(BadSettings, match=r"run_most: .*(cpu=2,memory=2GiB|more than 0)"):
        read_bounds(text, "run_most")


def test_a_run_may_ask_for_as_much_as_an_operator_allows_and_no_more() -> None:
    most = most_of(LIMITS, read_bounds("memory=1GiB,disk=512MiB", "run_most"))
    asked = Resources(memory_mib=1024, disk_mib=300, cpu_millis=50)
    assert allotted(asked, LIMITS, most) == replace(
        LIMITS, memory_bytes=1024 * MIB, disk_bytes=300 * MIB, cpu=0.05
    )
    assert most.cpu == len(os.sched_getaffinity(0))

    for beyond in (Resources(memory_mib=1025), Resources(pids=33), Resources(cpu_millis=10**6)):
        with pytest.raises(TooMuch, match="gives a run at most"):
            allotted(beyond, LIMITS, most)


MEETS: list[tuple[str, str, str, str]] = [
    ("sh", "head -c 30000000 /dev/zero > f", "disk_kill", "hold 16 MiB each (resources.disk)"),
    (
        "python",
        "import os, signal\nwhile True: os.fork() or signal.pause()",
        "pids_kill",
        "16 processes and threads (resources.pids)",
    ),
    (
        "python",
        "import os\nb = []\nwhile True: b.append(os.urandom(1 << 20))",
        "oom_kill",
        "64 MiB (resources.memory)",
    ),
    ("sh", "sleep 60", "timeout_kill", "may take 3 s (resources.wall)"),
]


@pytest.mark.parametrize(("language", "source", "reason", "said"), MEETS, ids=[row[2] for row in MEETS])
async def test_a_bound_that_ends_a_run_is_named_with_what_it_was(
    tmp_path: Path, language: str, source: str, reason: str, said: str
) -> None:
    limits = Limits(wall_s=3, memory_bytes=64 * MIB, pids=16, disk_bytes=16 * MIB)
    ending = await Cage(tmp_path, limits=limits).run(language, source)

    assert ending.failure_reason == reason, ending.response_text
    assert said in ending.response_text


def grouped(folder: Path) -> Layout | None:
    return make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, folder).layout


SPIN = """
import json, time
began, used = time.monotonic(), time.process_time()
while time.monotonic() - began < 0.8: pass
print(json.dumps({"share": (time.process_time() - used) / (time.monotonic() - began)}))
"""


async def test_a_run_is_kept_to_its_share_of_the_processors(tmp_path: Path) -> None:
    layout = grouped(tmp_path)
    if layout is None or not layout.shares:
        pytest.skip("no control group of this host bounds a share of the processors")
    ending = await Cage(tmp_path, limits=replace(LIMITS, cpu=0.2)).run("python", SPIN)

    assert ending.evidence is not None, ending.response_text
    assert 0 < ending.evidence["share"] < 0.5


async def test_without_a_control_group_a_process_is_kept_to_its_processor_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ungrouped(*given: object) -> object:
        return replace(make_sandbox(*given), layout=None)  # type: ignore[arg-type]

    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", ungrouped)
    limits = Limits(wall_s=40, memory_bytes=256 * MIB, pids=32, cpu=0.025)
    ending = await Cage(tmp_path, limits=limits).run("python", "while True: pass")

    assert ending.failure_reason == "cpu_kill", ending.response_text
    assert "for 40 s on 0.025 processors (resources.cpu)" in ending.response_text


@pytest.mark.parametrize(
    ("groups", "member", "written"),
    [
        (
            ("cpu", "memory", "pids"),
            "4:memory:/\n8:pids:/\n1:cpu:/\n",
            ("cpu/sexton-n", "cpu.cfs_quota_us", "50000"),
        ),
        ((), "0::/\n", ("sexton-n", "cpu.max", "50000 100000")),
    ],
    ids=["version 1", "version 2"],
)
def test_a_share_is_written_where_the_host_accounts_processors(
    tmp_path: Path, groups: tuple[str, ...], member: str, written: tuple[str, str, str]
) -> None:
    root = tmp_path / "cg"
    root.mkdir()
    for group in groups:
        (root / group).mkdir()
    if not groups:
        (root / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (tmp_path / "membership").write_text(member)
    layout = find_layout("n", LIMITS, root, tmp_path / "membership")
    assert layout is not None
    assert layout.shares

    folder, file, content = written
    layout.make("n", replace(LIMITS, cpu=0.5))
    assert (root / folder / file).read_text() == content


async def test_a_runner_says_what_it_offers_before_it_asks_for_work(tmp_path: Path) -> None:
    tools = ToolSettings(mcp_servers={"files": McpServer(command=("/usr/bin/true",))})
    async with open_plane() as plane:
        async with running(settings_for(plane, tmp_path, run_most="memory=2GiB,wall=2h", tools=tools)):
            await plane.until(lambda: plane.of("poll"))
        first = next(body for name, body in plane.calls if name in ("heartbeat", "poll"))

    assert first.offers is not None
    assert {"memory<=2048MiB", "wall<=7200s", "pids<=128", "disk<=512MiB", "mcp:files"} <= set(first.offers)
    assert all(beat.offers is None for beat in plane.of("heartbeat")[1:])


async def test_a_control_plane_that_knows_no_offers_is_worked_for_all_the_same(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.faults["heartbeat"] = [Fault(400, "UZ-REQ-001")]
        async with running(settings_for(plane, tmp_path)):
            plane.give("Greet.\n```sh\necho hello\n```\n")
            await plane.until(plane.reports)

    assert plane.reports()[0].response_text == "hello\n"


ASKS: list[tuple[dict[str, int], Callable[[str], bool]]] = [
    ({"disk_mib": 8, "memory_mib": 128}, lambda text: "disk_kill" in text and "8 MiB" in text),
    ({"memory_mib": 99_999}, lambda text: "resources: the agent asks for memory" in text),
]


async def test_a_lease_that_asks_is_given_what_it_asks_for_or_nothing(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=1)):
        for resources, _ in ASKS:
            lease = plane.give("Fill.\n```sh\nhead -c 20000000 /dev/zero > f\n```\n")
            lease["policy"]["resources"] = resources
        await plane.until(lambda: len(plane.reports()) == len(ASKS))

    for (_, is_told), report in zip(ASKS, plane.reports(), strict=True):
        assert is_told(report.response_text), report.response_text

    assert [report.failure_reason for report in plane.reports()] == ["disk_kill", "invalid_config"]
