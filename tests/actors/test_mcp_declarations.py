"""Servers of a workspace: what may be declared, how agents name them, and who may be lent them."""

import re
from typing import Any
from uuid import UUID

import pytest

from sexton_actors.loans import Files, after_files, lent_names, withheld
from sexton_actors.manifest.known_names import WORKSPACE_SERVERS
from sexton_actors.manifest.model import Manifest
from sexton_actors.manifest.parse import ManifestRejected, read
from sexton_actors.manifest.resources import needs_of
from sexton_actors.mcp_declarations import fault
from sexton_runner import main as runner
from sexton_storage.offers import OFFER
from tests.worlds.samples import skill_md, trigger_md

BY = f"user:{UUID(int=1)}"
GOOD: dict[str, Any] = {"url": "https://mcp.example.com/mcp"}
WITH_SECRET = {"authorization": "Bearer ${secrets.hub.token}"}


def manifest_of(config: str) -> Manifest:
    found = read(skill_md(), trigger_md(config=config))
    assert not isinstance(found, ManifestRejected), found
    return found.manifest


def problems_of(config: str) -> list[str]:
    found = read(skill_md(), trigger_md(config=config))
    assert isinstance(found, ManifestRejected)
    return [problem.key for problem in found.errors]


@pytest.mark.parametrize(
    ("declared", "field"),
    [
        (GOOD, None),
        ({"url": "https://mcp.example.com", "headers": WITH_SECRET, "tools": ["a.b"]}, None),
        ({"url": "http://127.0.0.1:9000/mcp", "headers": WITH_SECRET}, None),
        ({"command": "files", "env": {"LEVEL": "debug", "KEY": "${secrets.hub.token}"}}, None),
        ({}, "url"),
        ({**GOOD, "command": "files"}, "url"),
        ({"url": "http://mcp.example.com/mcp", "headers": WITH_SECRET}, "url"),
        ({"url": "https://u:p@mcp.example.com/mcp"}, "url"),
        ({"url": "https://mcp.example.com/mcp?key=1"}, "url"),
        ({"url": "https://mcp.example.com/a/../b"}, "url"),
        ({"url": "https://mcp.example.com/%2e%2e/b"}, "url"),
        ({"url": "https://mcp.example.com:99999/"}, "url"),
        ({"url": "https://[::1]/mcp"}, "url"),
        ({"url": "https://mcp.example.com/mcp\n"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({**GOOD, "env": {"A": "b"}}, "env"),
        ({**GOOD, "headers": {"host": "other.example.com"}}, "headers"),
        ({**GOOD, "headers": {"Mcp-Session-Id": "1"}}, "headers"),
        ({**GOOD, "headers": {"x-a": "1", "X-A": "2"}}, "headers"),
        ({**GOOD, "headers": {"x": "a\r\ny: b"}}, "headers"),
        ({**GOOD, "headers": {"x": "${secrets.hub}"}}, "headers"),
        ({**GOOD, "headers": {f"x{n}": "1" for n in range(17)}}, "headers"),
        ({**GOOD, "tools": ["a\nb"]}, "tools"),
        ({"command": "/bin/sh"}, "command"),
        ({"command": "files", "headers": {"x": "1"}}, "headers"),
        ({"command": "files", "env": {"LD_PRELOAD": "/tmp/x.so"}}, "env"),
        ({"command": "files", "env": {"HTTPS_PROXY": "http://elsewhere"}}, "env"),
    ],
)
def test_what_may_be_declared(declared: dict[str, Any], field: str | None) -> None:
    whole = {"url": "", "command": "", "headers": {}, "env": {}, "tools": (), **declared}
    found = fault("hub", **whole)

    assert (None if found is None else found[0]) == field


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 33, "mcp:a", "-a", "a\n"])
def test_what_is_no_name_of_a_server_is_refused(name: str) -> None:
    found = fault(name, url="https://a.example", command="", headers={}, env={}, tools=())

    assert found is not None
    assert found[0] == "name"


def test_an_agent_names_servers_of_its_workspace_beside_those_of_runners() -> None:
    manifest = manifest_of("tools: [mcp:hub, files.read, shell]\nmcp_servers: [hub]")

    assert manifest.mcp_servers == ("hub",)
    assert needs_of(manifest) == (WORKSPACE_SERVERS, "mcp:files")


@pytest.mark.parametrize(
    "config",
    [
        "mcp_servers: [hub]",
        "tools: [mcp:other]\nmcp_servers: [hub]",
        "tools: [mcp:hub]\nmcp_servers: ['a b']",
        "tools: [mcp:hub]\nmcp_servers: hub",
        "runtime: command\ntools: [mcp:hub]\nmcp_servers: [hub]",
    ],
)
def test_servers_that_would_give_no_tool_are_refused_at_installation(config: str) -> None:
    assert any(key.startswith("mcp_servers") for key in problems_of(config))


def test_a_user_s_agent_is_lent_a_server_when_an_operator_has_said_so() -> None:
    manifest = manifest_of("tools: [hub.read]\nmcp_servers: [hub]")
    wider = manifest_of("tools: [mcp:hub]\nmcp_servers: [hub]")

    of_user = after_files({}, Files(manifest, BY, may_grant=False), 1)
    of_operator = after_files({}, Files(manifest, BY, may_grant=True), 1)

    assert lent_names(manifest) == ("mcp.hub",)
    assert withheld(of_user, manifest) == ("mcp.hub",)
    assert withheld(of_operator, manifest) == ()
    assert withheld(after_files(of_operator, Files(wider, BY, may_grant=False), 2), wider) == ("mcp.hub",)


def test_a_runner_offers_what_a_workspace_s_servers_need() -> None:
    assert runner.WORKSPACE_SERVERS == WORKSPACE_SERVERS
    assert re.fullmatch(OFFER, WORKSPACE_SERVERS), "an older server takes it for an offer, too"
