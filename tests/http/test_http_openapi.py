"""The OpenAPI document, as tools of other languages read it."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from sexton_http.bodies.shapes import Shape
from sexton_http.describe.documents import make_documents
from sexton_http.describe.openapi import make_document
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.table import OPERATIONS
from tests.worlds.http import HttpWorld

MAX_BYTES_A_ROUTE = 2_500
NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
NOT_ECMA = re.compile(
    r"\\[ZAaQEGzhHRXK]|\(\?(?![:=!]|<[=!]|<[A-Za-z_$])|\(\?P|[*+?}]\+|\\p(?!\{)|\[\[:|\\U|\\x\{"
)
"""What other dialects have and ECMA-262, with the flag ``u``, has not."""


@cache
def document() -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(make_documents(OPERATIONS, "https://sexton.example").openapi)
    return made


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from nodes(value)
    elif isinstance(node, list):
        for value in node:
            yield from nodes(value)


def patterns() -> list[str]:
    found = {node["pattern"] for node in nodes(document()) if isinstance(node.get("pattern"), str)}
    return sorted(found)


# --- patterns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [r"^a\Z", r"\Aa", "(?P<name>a)", "(?i)a", "a++", "(?>a)", "[[:alpha:]]"])
def test_a_pattern_of_another_dialect_is_known_as_such(pattern: str) -> None:
    assert NOT_ECMA.search(pattern)


def test_patterns_are_those_of_ecma_262() -> None:
    assert len(patterns()) > 10
    assert [pattern for pattern in patterns() if NOT_ECMA.search(pattern)] == []


def test_javascript_compiles_every_pattern() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = "for (const p of JSON.parse(process.argv[1])) new RegExp(p, 'u')"
    done = subprocess.run(
        [node, "-e", script, json.dumps(patterns())], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


# --- names --------------------------------------------------------------------------------------------------


def test_components_have_short_names_which_no_other_has() -> None:
    names = list(document()["components"]["schemas"])

    assert [name for name in names if NAME.fullmatch(name) is None or len(name) > 30] == []
    assert len({name.casefold() for name in names}) == len(names) > 100


def test_two_types_of_one_name_make_no_document() -> None:
    def declared(path: str, name: str) -> Any:
        kind = msgspec.defstruct(name, [("x", int)], bases=(Shape,), module=f"some{path.replace('/', '.')}")

        async def handler(call: Call[NoBody, NoQuery]) -> None:
            """Nothing."""

        handler.__name__ = path.strip("/")
        return operation("GET", path, tag="Service", answer=kind)(handler)

    assert make_document([declared("/a", "One"), declared("/b", "Other")], "")

    with pytest.raises(ValueError, match="two types have one name"):
        make_document([declared("/a", "Same"), declared("/b", "Same")], "")
    with pytest.raises(ValueError, match="one file"):
        make_document([declared("/a", "Same"), declared("/b", "SAME")], "")


# --- what generators stumble over ---------------------------------------------------------------------------


def test_every_body_and_answer_has_a_media_type_of_its_own() -> None:
    media = {name for node in nodes(document()) for name in node.get("content", ()) if "/" in name}

    assert "application/json" in media
    assert [name for name in media if "*" in name] == []


def test_every_array_says_what_is_in_it() -> None:
    for node in nodes(document()):
        kind = node.get("type")
        if kind == "array" or (isinstance(kind, list) and "array" in kind):
            assert "items" in node or "prefixItems" in node, node
    keys = document()["components"]["schemas"]["KeySet"]["properties"]["keys"]

    assert keys["items"] == {"$ref": "#/components/schemas/PublicKey"}


def test_what_nobody_needs_a_token_for_says_so() -> None:
    paths = document()["paths"]
    for row in OPERATIONS:
        security = paths[row.path][row.method.lower()]["security"]
        assert (security == []) == (row.auth in {Auth.PUBLIC, Auth.WEBHOOK}), row.path


def test_a_stream_says_how_it_is_resumed() -> None:
    made = document()
    described = made["paths"]["/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/stream"]["get"]
    assert {"$ref": "#/components/parameters/LastEventId"} in described["parameters"]

    told = made["components"]["parameters"]["LastEventId"]
    assert (told["name"], told["in"], told["required"]) == ("Last-Event-ID", "header", False)


def test_every_tag_is_described() -> None:
    tags = document()["tags"]

    assert {tag["name"] for tag in tags} == {row.tag for row in OPERATIONS}
    assert all(tag["description"].endswith(".") for tag in tags)


def test_error_answers_are_shared() -> None:
    made = document()
    for row in OPERATIONS:
        described = made["paths"][row.path][row.method.lower()]
        plain = {str(row.status), *map(str, row.extra_statuses)}
        for status, answer in described["responses"].items():
            if status not in plain:
                assert answer.keys() == {"$ref"}, (row.path, status)
        own = {code for codes in described["x-error-codes"].values() for code in codes}
        assert own <= {*row.all_codes()}, row.path
        assert {*row.codes} - {"UZ-REQ-003", "UZ-API-003"} <= own, row.path


def test_nothing_is_described_that_no_route_has() -> None:
    made = document()
    used = {node["$ref"] for node in nodes(made) if isinstance(node.get("$ref"), str)}
    for kind in ("schemas", "responses", "headers", "parameters"):
        for name in made["components"][kind]:
            assert f"#/components/{kind}/{name}" in used, name


async def test_the_document_is_small_enough_to_be_read_by_every_tool(world: HttpWorld) -> None:
    answer = await world.get("/openapi.json", None)
    assert len(answer.content) <= MAX_BYTES_A_ROUTE * len(OPERATIONS)
