"""What a run may have, as an author writes it, and what is refused with its bound."""

import pytest

from sexton_actors.manifest.model import Manifest, Resources, from_json, to_json
from sexton_actors.manifest.parse import ManifestRejected, parse
from sexton_actors.manifest.resources import needs_of
from tests.worlds.samples import agent_files


def test_the_mcp_servers_of_a_models_tools_are_needs_and_those_of_a_command_are_not() -> None:
    tools = "tools: [shell, mcp:files, tickets.open, tickets.close, mcp:a.b]"
    agent, command = read(tools), read(f"{tools}\nruntime: command")

    assert isinstance(agent, Manifest)

    assert needs_of(agent) == ("gpu", "mcp:files", "mcp:tickets")
    assert isinstance(command, ManifestRejected) or needs_of(command) == ("gpu",)


WRONG: list[tuple[str, str, str]] = [
    ("resources: 2", "resources", "mapping"),
    ("resources: {gpu: 1}", "resources.gpu", "unknown key"),
    ("resources: {cpu: 65}", "resources.cpu", "from 0.05 to 64 processors"),
    ("resources: {cpu: 0.01}", "resources.cpu", "from 0.05 to 64 processors"),
    ("resources: {cpu: -1}", "resources.cpu", "number of processors"),
    ("resources: {cpu: [1]}", "resources.cpu", "number of processors"),
    ("resources: {memory: 512}", "resources.memory", "such as `512MiB` or `2GiB`"),
    ("resources: {memory: 63MiB}", "resources.memory", "from 64MiB to 262144MiB"),
    ("resources: {memory: 999999999GiB}", "resources.memory", "from 64MiB to 262144MiB"),
    ("resources: {pids: 40000}", "resources.pids", "from 8 to 32768"),
    ("resources: {pids: many}", "resources.pids", "whole number"),
    ("resources: {disk: 2GiB}", "resources.disk", "at most 512MiB without `memory`"),
    ("resources: {memory: 1GiB, disk: 2GiB}", "resources.disk", "at most 1024MiB with `memory: 1024MiB`"),
    ("resources: {wall: 13h}", "resources.wall", "from 1s to 43200s"),
    ("resources: {wall: 90}", "resources.wall", "`90s`, `30m` or `2h`"),
    ("resources: {wall: }", "resources.wall", "is empty"),
    ("image: ../etc", "image", "does not fit"),
    ("image: Web", "image", "does not fit"),
    ("image: web@sha256:12", "image", "does not fit"),
    ("image: [web]", "image", "must be text"),
]


def test_an_image_is_a_need_too() -> None:
    digest = f"sha256:{'0a' * 32}"
    for image in ("web", f"web@{digest}"):
        manifest = read(f"image: {image}\nresources: {{pids: 8}}")
        assert isinstance(manifest, Manifest)
        assert needs_of(manifest) == ("gpu", f"image:{image}", "pids>=8")


def read(config: str) -> Manifest | ManifestRejected:
    files = agent_files("doctor", config, tags="gpu")
    return parse(files["source_markdown"], files["trigger_markdown"])


def test_what_is_asked_for_is_kept_and_is_a_need() -> None:
    manifest = read("resources: {cpu: 0.5, memory: 2GiB, pids: 64, disk: 1GiB, wall: 30m}")
    assert isinstance(manifest, Manifest)
    assert manifest.resources == Resources(500, 2048, 64, 1024, 1800)
    assert from_json(to_json(manifest)) == manifest

    measures = ("cpu>=0.5", "memory>=2048MiB", "pids>=64", "disk>=1024MiB", "wall>=1800s")
    assert needs_of(manifest) == ("gpu", *measures)


@pytest.mark.parametrize(("line", "key", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_beyond_the_fleets_bounds_is_refused_by_line_key_and_bound(
    line: str, key: str, said: str
) -> None:
    rejected = read(line)
    files = agent_files("doctor", line, tags="gpu")
    assert isinstance(rejected, ManifestRejected)

    (problem,) = rejected.errors
    at = files["trigger_markdown"].split("\n").index(line) + 1
    assert (problem.file, problem.line, problem.key) == ("TRIGGER.md", at, key)
    assert said in problem.message
