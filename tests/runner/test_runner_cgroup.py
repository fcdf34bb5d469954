"""Where control groups are looked for, and what is written into them."""

from pathlib import Path

import pytest

from sexton_runner.sandbox import cgroup
from sexton_runner.sandbox.cgroup import Group, Layout, find_layout
from sexton_runner.sandbox.limits import Limits, prlimit_words

LIMITS = Limits(wall_s=10, memory_bytes=1 << 30, pids=64)


def host(root: Path, *, unified: bool, groups: tuple[str, ...]) -> Path:
    """Lay out a file system that looks like the host's control groups."""
    root.mkdir()
    if unified:
        (root / "cgroup.controllers").write_text("memory pids")
    for group in groups:
        (root / group).mkdir(parents=True)
    return root


def membership(folder: Path, text: str) -> Path:
    path = folder / "membership"
    path.write_text(text)
    return path


def test_version_2_groups_are_made_beside_the_runner_s_own(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=True, groups=("user.slice/app.slice/runner.scope",))
    layout = find_layout("n", LIMITS, root, membership(tmp_path, "0::/user.slice/app.slice/runner.scope\n"))

    assert layout == Layout((root / "user.slice/app.slice",))


def test_version_2_groups_are_made_at_the_top_by_a_runner_that_is_there(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=True, groups=())
    assert find_layout("n", LIMITS, root, membership(tmp_path, "0::/\n")) == Layout((root,))


def test_in_a_group_that_was_left_to_us_groups_are_made_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = host(tmp_path / "cg", unified=True, groups=("system.slice/sexton.service",))
    own = root / "system.slice/sexton.service"
    (own / "cgroup.procs").write_text("41\n42\n")
    monkeypatch.setattr(cgroup, "_is_delegated", lambda group: group == own)
    layout = find_layout("n", LIMITS, root, membership(tmp_path, "0::/system.slice/sexton.service\n"))

    assert layout == Layout((own,))
    assert (own / "runners" / "cgroup.procs").read_text() == "42"
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_group_whose_mark_is_missing_is_left_as_it_is(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=True, groups=("system.slice/other.service",))
    find_layout("n", LIMITS, root, membership(tmp_path, "0::/system.slice/other.service\n"))

    assert not (root / "system.slice/other.service/runners").exists()


def test_version_1_groups_are_made_within_the_runner_s_own(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=False, groups=("memory/box", "pids"))
    layout = find_layout(
        "n", LIMITS, root, membership(tmp_path, "4:memory:/box\n3:cpu,cpuacct:/\n8:pids:/\n0::/\n")
    )

    assert layout == Layout((root / "memory/box", root / "pids"))


def test_version_1_groups_are_made_at_the_top_when_the_own_one_is_out_of_sight(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=False, groups=("memory", "pids"))
    layout = find_layout("n", LIMITS, root, membership(tmp_path, "4:memory:/elsewhere\n8:pids:/elsewhere\n"))

    assert layout == Layout((root / "memory", root / "pids"))


def test_where_no_group_can_be_made_there_is_no_layout(tmp_path: Path) -> None:
    root = host(tmp_path / "cg", unified=False, groups=())

    assert find_layout("n", LIMITS, root, membership(tmp_path, "0::/x\n")) is None
    assert find_layout("n", LIMITS, root, tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("parents", "written"),
    [
        (("a",), {"a/memory.max": str(1 << 30), "a/memory.swap.max": "0", "a/pids.max": "64"}),
        (
            ("m", "p"),
            {
                "m/memory.limit_in_bytes": str(1 << 30),
                "m/memory.memsw.limit_in_bytes": str(1 << 30),
                "p/pids.max": "64",
            },
        ),
    ],
)
def test_both_bounds_are_written(tmp_path: Path, parents: tuple[str, ...], written: dict[str, str]) -> None:
    for parent in parents:
        (tmp_path / parent).mkdir()
    group = Layout(tuple(tmp_path / parent for parent in parents)).make("x", LIMITS)
    texts = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}

    assert {str(path.parent.parent / path.name): text for path, text in texts.items()} == written
    assert [Path(join).parent.name for join in group.joins] == ["sexton-x"] * len(parents)


@pytest.mark.parametrize(
    ("name", "text", "killed"),
    [
        ("memory.events", "low 0\nmax 3\noom 1\noom_kill 1\n", True),
        ("memory.events", "oom 0\noom_kill 0\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        ("other", "", False),
    ],
)
def test_a_kill_for_want_of_memory_is_told_in_both_versions(
    tmp_path: Path, name: str, text: str, killed: bool
) -> None:
    (tmp_path / name).write_text(text)
    assert Group((tmp_path,)).out_of_memory() is killed


def test_without_a_group_memory_is_bounded_by_process() -> None:
    assert "--as=1073741824" in prlimit_words(LIMITS, grouped=False)
    assert not any(word.startswith("--as") for word in prlimit_words(LIMITS, grouped=True))
