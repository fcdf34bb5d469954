"""One declaration per route: the routes, the documents and the pages all follow from it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from quart_trio import QuartTrio

from sexton_http import routes
from sexton_http.describe.documents import make_documents
from sexton_http.describe.openapi import make_document
from sexton_http.describe.reference import PAGES
from sexton_http.error_codes.code import Shown
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Gcra
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.quart_mount import make_quart
from sexton_http.gateway.safe_headers import ALWAYS
from sexton_http.gateway.services import make_services
from sexton_http.identity.context import HttpContext
from sexton_http.problems import CODES
from sexton_http.routes.removed import PREFIXES, gone
from sexton_http.routes.table import OPERATIONS
from tests.worlds.http import HttpWorld

ROOT = Path(__file__).resolve().parents[2]


def declared() -> set[tuple[str, str]]:
    return {
        (operation.method, re.sub(r"\{(\w+)\}", r"<segment:\1>", operation.path)) for operation in OPERATIONS
    }


def mounted(world: HttpWorld) -> QuartTrio:
    documents = make_documents(OPERATIONS, "")
    services = make_services(apart(world), documents, Gcra(lambda: 0.0))
    routes = [Mounted(operation, services) for operation in OPERATIONS]
    return make_quart(services, routes, removed=PREFIXES, gone=gone)


def apart(world: HttpWorld) -> HttpContext:
    """The context of the world with a registry of its own, in which nothing is registered yet."""
    return replace(world.ctx, registry=CollectorRegistry())


async def test_no_route_is_without_its_declaration(world: HttpWorld) -> None:
    for rule in mounted(world).url_map.iter_rules():
        if any(rule.rule.startswith(prefix) and "<segment" not in rule.rule for prefix in PREFIXES):
            continue
        if rule.endpoint.startswith("not here"):
            continue  # These do nothing but say 405.
        for method in (rule.methods or set()) - {"HEAD"}:
            assert (method, rule.rule) in declared()


def test_every_declaration_of_a_module_stands_in_the_table() -> None:
    folder = Path(next(iter(routes.__path__)))
    names = "operation|page_operation|form_operation|console_operation|console_form|_route"
    declaration = re.compile(rf"^@({names})\(", re.MULTILINE)
    made = sum(len(declaration.findall(path.read_text())) for path in folder.rglob("*.py"))

    assert made == len(OPERATIONS) == len({(row.method, row.path) for row in OPERATIONS})
    assert len({row.name for row in OPERATIONS}) == len(OPERATIONS)


def test_every_declared_code_can_be_an_answer() -> None:
    for row in OPERATIONS:
        for code in row.all_codes():
            assert Shown.ANSWER in CODES[code].shown, (row.path, code)


def test_a_code_that_no_table_has_cannot_be_declared() -> None:
    async def handler(call: Call[NoBody, NoQuery]) -> None:
        """Nothing."""

    with pytest.raises(ValueError, match="UZ-NO-001"):
        operation("GET", "/x", tag="T", codes=("UZ-NO-001",))(handler)


def test_a_route_has_one_shape_of_answer() -> None:
    async def handler(call: Call[NoBody, NoQuery]) -> int | str:
        """Nothing."""
        raise NotImplementedError

    with pytest.raises(TypeError, match="one shape"):
        operation("GET", "/x", tag="T")(handler)


def test_every_route_says_what_it_does() -> None:
    for row in OPERATIONS:
        assert row.summary.endswith("."), row.path


def test_the_document_has_every_route_and_no_dangling_reference() -> None:
    document = make_document(OPERATIONS, "http://x")
    assert document["openapi"] == "3.1.0"

    shown = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert shown == {(row.method, row.path) for row in OPERATIONS}

    for reference in references(document):
        kind, _, name = reference.removeprefix("#/components/").partition("/")
        assert name in document["components"][kind], reference


def resolved(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in node:
        return node
    kind, _, name = node["$ref"].removeprefix("#/components/").partition("/")
    found: dict[str, Any] = document["components"][kind][name]
    return found


def test_a_status_of_pages_and_of_problems_is_described_as_both() -> None:
    document = make_document(OPERATIONS, "http://x")
    met = 0
    for row in OPERATIONS:
        for status in {row.status_of(code) for code in row.all_codes()} & {row.status, *row.extra_statuses}:
            content = document["paths"][row.path][row.method.lower()]["responses"][str(status)]["content"]
            assert content.keys() == {*row.media.split(", "), "application/problem+json"}, (row.path, status)
            met += 1

    assert met


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [found for value in node.values() for found in references(value)]
    if isinstance(node, list | tuple):
        return [found for value in node for found in references(value)]
    return []


def test_the_document_says_who_may_call_what() -> None:
    document = make_document(OPERATIONS, "http://x")
    for row in OPERATIONS:
        described = document["paths"][row.path][row.method.lower()]
        assert (described["security"] == []) == (row.auth in {Auth.PUBLIC, Auth.WEBHOOK})
        statuses = {str(row.status_of(code)) for code in row.all_codes()} | {str(row.status)}
        assert statuses <= set(described["responses"])
        parameters = [resolved(document, parameter) for parameter in described["parameters"]]
        named = [parameter["name"] for parameter in parameters if parameter["in"] == "path"]
        assert named == list(row.params)


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_up_to_date(name: str) -> None:
    kept = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert kept == PAGES[name](), "run: python -m sexton_http.describe.reference docs/reference"


async def test_a_server_describes_itself(world: HttpWorld) -> None:
    document = (await world.get("/openapi.json", None)).json()
    assert document["servers"] == [{"url": world.base_url}]

    page = await world.get("/docs", None)
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert "src=" not in page.text
    assert "http://" not in page.text

    for row in OPERATIONS:
        assert f"{row.method} {row.path}" in page.text


def test_what_a_pages_form_sends_is_described() -> None:
    document = make_document(OPERATIONS, "http://x")
    forms = {route.name: route for route in OPERATIONS if route.form is not None}
    assert forms.keys() == {
        *("submit_key", "submit_workspace", "submit_change"),
        *("submit_member", "submit_role", "submit_standing", "submit_removal", "submit_invitation"),
        *("submit_credential_grant", "submit_grant"),
        *("submit_event", "submit_decision", "submit_agent"),
        *(
            "submit_delivery",
            "submit_schedule",
            "submit_failure",
            "submit_job",
            "submit_job_change",
            "submit_runner",
            "submit_actor",
        ),
        *("submit_model", "submit_setting", "submit_credit", "submit_trial"),
    }

    for route in forms.values():
        described = document["paths"][route.path]["post"]["requestBody"]
        (schema,) = [part["schema"] for part in described["content"].values()]
        assert list(described["content"]) == ["application/x-www-form-urlencoded"]
        fields = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
        assert fields.keys() == set(route.form.__struct_fields__ if route.form else ())


def test_the_removed_pipeline_stays_in_the_document() -> None:
    document = make_document(OPERATIONS, "http://x")
    paths, schemas = document["paths"], document["components"]["schemas"]
    assert {"/v1/runs/{run_id}", "/v1/runs/{run_id}:retry", "/v1/specs"} <= paths.keys()

    for path in ("/v1/runs/{run_id}", "/v1/runs/{run_id}:retry", "/v1/specs"):
        assert all(described["deprecated"] for described in paths[path].values())
    body = paths["/v1/runs/{run_id}:retry"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    retry = schemas[body["$ref"].rpartition("/")[2]]
    assert set(retry["required"]) == set(retry["properties"]) == {"reason", "retry_token"}
    assert schemas["Run"]["properties"]["mode"] == {"enum": ["pull_request"]}


def test_the_document_says_which_headers_come_with_which_status() -> None:
    document = make_document(OPERATIONS, "http://x")
    for row in OPERATIONS:
        for status, response in document["paths"][row.path][row.method.lower()]["responses"].items():
            told = set(resolved(document, response)["headers"])
            limited = "UZ-REQ-006" in row.all_codes()
            assert "X-Request-Id" in told
            assert told >= {"RateLimit", "RateLimit-Policy"} if limited else "RateLimit" not in told
            assert ("WWW-Authenticate" in told) == (status == "401")
            assert ("Location" in told) == (status in {"302", "303"}), (row.path, status)
            assert "Retry-After" in told or status not in {"429", "503"}
            assert row.creates is not Creates.NOTHING or "Idempotent-Replayed" not in told


async def test_the_headers_of_an_answer_are_those_of_the_document(world: HttpWorld) -> None:
    document = make_document(OPERATIONS, "http://x")
    responses = document["paths"]["/v1/workspaces"]["post"]["responses"]
    key = {"idempotency-key": "k"}
    answers = [await world.post("/v1/workspaces", {}, headers=key) for _ in range(2)]
    answers += [await world.post("/v1/workspaces", {}, None), await world.post("/v1/workspaces", {"x": 1})]
    for answer in answers:
        told = {name.lower() for name in resolved(document, responses[str(answer.status_code)])["headers"]}
        own = {*answer.headers} - {"content-type", "content-length", "date"}
        # What all answers have is described once, for the whole document.
        everywhere = {name.decode() for name, _ in ALWAYS} & own
        assert all(name.title() in document["info"]["description"] for name in everywhere)
        own -= everywhere

        assert own <= told, answer.status_code

    assert answers[1].headers["idempotent-replayed"] == "true"
