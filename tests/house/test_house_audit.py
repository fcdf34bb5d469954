"""Each route that changes something says what the audit log tells of it, or why it tells nothing."""

import msgspec

from sexton_http.gateway.operations import Auth
from sexton_http.routes.audit_actions import AUDITED, NOT_AUDITED, ONLY_EVENTS, is_decided
from sexton_http.routes.table import OPERATIONS

SECRETS = ("secret", "token", "api_key", "data", "markdown", "ciphertext", "code", "password", "value")


def test_every_route_that_changes_something_is_decided() -> None:
    names = {operation.name for operation in OPERATIONS}
    undecided = [operation.name for operation in OPERATIONS if not is_decided(operation)]

    assert undecided == [], "name them in http/sexton_http/routes/audit_actions.py"
    assert (AUDITED.keys() | NOT_AUDITED.keys()) <= names
    assert AUDITED.keys() & NOT_AUDITED.keys() == set()
    assert not any(one.audit and one.auth in ONLY_EVENTS for one in OPERATIONS)
    assert not any(one.audit and one.hot for one in OPERATIONS), "the hot path pays nothing for the log"
    assert {Auth.RUNNER, Auth.WEBHOOK} == ONLY_EVENTS


def test_what_is_told_is_a_field_of_the_route_and_no_secret() -> None:
    for operation in OPERATIONS:
        if operation.audit is None:
            continue
        shapes = (operation.body, operation.query)
        fields = {field.name for shape in shapes for field in msgspec.structs.fields(shape)}
        told = {*operation.audit.facts, operation.audit.target} - {""}
        assert told <= fields, operation.name
        assert not [fact for fact in told for word in SECRETS if word == fact], operation.name
