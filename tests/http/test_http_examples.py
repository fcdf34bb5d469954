"""The examples of the OpenAPI document are true: they fit their schemas, and what the server says today."""

from typing import Any

import httpx2
import jsonschema
import msgspec
import pytest

from sexton_http.bodies.lenient import decoder_of
from sexton_http.describe.documents import make_documents
from sexton_http.describe.examples import EXAMPLES
from sexton_http.routes.table import OPERATIONS
from tests.worlds.answer_checks import check_shape, disagreement, has_example, route_of
from tests.worlds.every_route import take
from tests.worlds.http import HttpWorld

JSON = "application/json"
BY_NAME = {row.name: row for row in OPERATIONS}
WITHOUT = {
    "openapi": "it would stand in itself",
    "get_run": "it was removed, and answers nothing else any more",
    "retry_run": "it was removed, and answers nothing else any more",
    "view_supervisor": "its tree is too long to be read as an example",
    "view_tree": "its tree is too long to be read as an example",
    "probe_chat": "it needs a chat platform",
    "press_in_chat": "it needs a chat platform, which signs it",
    "deliver_multisig": "it answers as `deliver` does",
    "show_catalogue": "it needs an operator's catalogue",
    "put_tenant_provider": "it needs an operator's catalogue",
    "make_token": "only pages of the server itself call it",
    "create_sign_in": "it needs a token that a browser approved for a terminal",
    "renew_token": "it needs a token that a browser approved for a terminal",
    "park_lease": "it needs a run that has waited for a minute",
}
"""Routes that answer JSON and show no example, and why."""


def document() -> dict[str, Any]:
    made: dict[str, Any] = msgspec.json.decode(make_documents(OPERATIONS, "https://sexton.example").openapi)
    return made


def test_every_request_and_every_success_has_an_example() -> None:
    missing = []
    for row in OPERATIONS:
        if row.name in WITHOUT or row.media != JSON:
            continue
        example = EXAMPLES.get(row.name)
        if row.has_body and (example is None or example.request is msgspec.UNSET):
            missing.append(f"{row.name}: request")
        if row.answer is not None and (example is None or not example.answers):
            missing.append(f"{row.name}: answer")

    assert missing == [], "record them: see tests/worlds/example_recorder.py"


def test_no_example_is_of_a_route_that_is_gone() -> None:
    assert EXAMPLES.keys() <= BY_NAME.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_its_route_takes_and_gives(name: str) -> None:
    row, example = BY_NAME[name], EXAMPLES[name]
    if example.request is not msgspec.UNSET:
        decoder_of(row.body).decode(msgspec.json.encode(example.request))
    for status, answer in example.answers.items():
        assert int(status) in {row.status, *row.extra_statuses}
        check_shape(row, msgspec.json.encode(answer))


def test_examples_fit_the_schemas_that_stand_beside_them() -> None:
    made, tried = document(), 0
    for row in OPERATIONS:
        described = made["paths"][row.path][row.method.lower()]
        parts = [described.get("requestBody", {}), *described["responses"].values()]
        for shown in [part["content"][JSON] for part in parts if JSON in part.get("content", {})]:
            if "example" in shown:
                schema = {**shown["schema"], "components": made["components"]}
                jsonschema.Draft202012Validator(schema).validate(shown["example"])
                tried += 1

    assert tried == sum(len(one.answers) + (one.request is not msgspec.UNSET) for one in EXAMPLES.values())


async def test_a_live_server_answers_in_the_shape_of_the_examples(world: HttpWorld) -> None:
    compared: set[str] = set()

    async def compare(answer: httpx2.Response) -> None:
        row = route_of(answer.request.method, answer.request.url.path)
        if row is not None and has_example(row, answer):
            compared.add(row.name)

    world.http.event_hooks["response"].append(compare)
    await take(world)

    assert len(compared) > 60


def test_a_difference_in_kind_is_found() -> None:
    assert disagreement({"a": [{"b": 1}]}, {"a": [{"b": "1"}]}) == "$.a[0].b"
    assert disagreement({"a": 1, "b": None}, {"a": 1.5, "c": 2}) == ""
