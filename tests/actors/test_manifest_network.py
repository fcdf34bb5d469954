"""Where runs may go, whole hosts and parts of hosts, and the variables that their programs find."""

import pytest

from sexton_actors.gate_requests.evidence import reach_of
from sexton_actors.loans import Files, after_files, covers, reach_of as reach_to_grant, unlent, withheld
from sexton_actors.manifest.model import Manifest, NetworkRule, from_json, to_json
from sexton_actors.manifest.parse import ManifestRejected, parse
from tests.worlds.samples import agent_files, command_body


def read(config: str) -> Manifest | ManifestRejected:
    files = agent_files("doctor", config)
    return parse(files["source_markdown"], files["trigger_markdown"])


def good(config: str) -> Manifest:
    found = read(config)
    assert isinstance(found, Manifest), found
    return found


def test_a_host_may_be_allowed_in_part() -> None:
    manifest = good(
        """\
network:
  allow:
    - api.github.com
    - {host: Git.example.com, ports: [443, 8443], methods: [GET, POST], paths: [/acme/, /v1/x]}
    - {host: whole.example.com}
credentials: [hub]
env:
  GITHUB_TOKEN: ${secrets.hub.token}
  MODE: "fast"
  EMPTY: ""
"""
    )

    rule = NetworkRule("git.example.com", (443, 8443), ("GET", "POST"), ("/acme/", "/v1/x"))

    assert manifest.network_allow == ("api.github.com", "whole.example.com")
    assert manifest.network_rules == (rule,)
    assert manifest.network_hosts == ("api.github.com", "whole.example.com", "git.example.com")
    assert manifest.env == {"GITHUB_TOKEN": "${secrets.hub.token}", "MODE": "fast", "EMPTY": ""}
    assert from_json(to_json(manifest)) == manifest
    assert "git.example.com port 443,8443 GET,POST /acme/,/v1/x" in reach_of(manifest)


def test_who_was_granted_a_part_of_a_host_was_not_granted_all_of_it() -> None:
    part = reach_to_grant(good("network: {allow: [{host: a.example.com, methods: [GET]}]}"))
    whole = reach_to_grant(good("network: {allow: [a.example.com]}"))
    wider = reach_to_grant(good("network: {allow: [{host: a.example.com, methods: [GET, PUT]}]}"))

    assert covers(part, part)
    assert covers(whole, part)
    assert not covers(part, whole)
    assert not covers(part, wider)


def test_a_command_that_nobody_was_asked_about_goes_on_without_what_it_names() -> None:
    command = read_command("runtime: command\ncredentials: [hub]\nnetwork: {allow: [a.example.com]}")
    shut = read_command("runtime: command\ncredentials: [hub]")
    asked = after_files({}, Files(command, "user:u1", may_grant=False), now=1)
    granted = after_files({}, Files(command, "user:u2", may_grant=True), now=1)

    assert [(withheld(kept, command), unlent(kept, command)) for kept in ({}, asked, granted)] == [
        ((), ("hub",)),
        (("hub",), ()),
        ((), ()),
    ]
    assert after_files({}, Files(shut, "user:u1", may_grant=False), now=1) == {}


def read_command(config: str) -> Manifest:
    files = agent_files("doctor", config, body=command_body("true"))
    found = parse(files["source_markdown"], files["trigger_markdown"])
    assert isinstance(found, Manifest), found
    return found


WRONG = [
    ("network: {allow: [{ports: [443]}]}", "network.allow[0].host", "is missing"),
    ("network: {allow: [{host: a.com, port: 443}]}", "network.allow[0].port", "unknown key"),
    ("network: {allow: [{host: a.com, ports: [0]}]}", "network.allow[0].ports[0]", "1 to 65535"),
    ("network: {allow: [{host: a.com, ports: [65536]}]}", "network.allow[0].ports[0]", "1 to 65535"),
    ("network: {allow: [{host: a.com, ports: ['443']}]}", "network.allow[0].ports[0]", "1 to 65535"),
    ("network: {allow: [{host: a.com, ports: []}]}", "network.allow[0].ports", "1 to 16 entries"),
    ("network: {allow: [{host: a.com, methods: []}]}", "network.allow[0].methods", "1 to 16 entries"),
    ("network: {allow: [{host: a.com, methods: [get]}]}", "network.allow[0].methods[0]", "does not fit"),
    ("network: {allow: [{host: a.com, paths: [x]}]}", "network.allow[0].paths[0]", "does not fit"),
    ("network: {allow: [{host: a.com, paths: [/a/../b]}]}", "network.allow[0].paths[0]", "does not fit"),
    ("network: {allow: [{host: a.com, paths: [/a%2fb]}]}", "network.allow[0].paths[0]", "does not fit"),
    ("network: {allow: [{host: a.com, paths: [/a//b]}]}", "network.allow[0].paths[0]", "does not fit"),
    ("network: {allow: [{host: a.com, paths: [/a?b]}]}", "network.allow[0].paths[0]", "does not fit"),
    ("network: {allow: [a.com, {host: A.com, paths: [/x]}]}", "network.allow[1]", "whole and in part"),
    ("network: {allow: [{host: a.com, paths: [/x]}, a.com]}", "network.allow[1]", "whole and in part"),
    ("env: {PATH: x}", "env.PATH", "is set by the runner"),
    ("env: {https_proxy: x}", "env.https_proxy", "is set by the runner"),
    ("env: {LD_PRELOAD: x}", "env.LD_PRELOAD", "is set by the runner"),
    ("env: {SEXTON_RUN: x}", "env.SEXTON_RUN", "is set by the runner"),
    ("env: {'A B': x}", "env.A B", "is no name of a variable"),
    ("env: {A: yes}", "env.A", "in quotes"),
    ("env: {A: '${secrets.hub.token}'}", "env.A", "not in `credentials`"),
    ("env: [a]", "env", "mapping"),
]


@pytest.mark.parametrize(("config", "key", "says"), WRONG, ids=[config for config, _, _ in WRONG])
def test_a_wrong_entry_is_named_with_its_line_key_and_bound(config: str, key: str, says: str) -> None:
    found = read(config)
    assert isinstance(found, ManifestRejected)

    told = next(error for error in found.errors if error.key == key)
    assert (told.file, told.code) == ("TRIGGER.md", "UZ-ZMB-008")
    assert config in agent_files("doctor", config)["trigger_markdown"].splitlines()[told.line - 1]
    assert says in told.message
