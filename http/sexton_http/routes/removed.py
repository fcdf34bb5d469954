"""The run pipeline that is gone: its shapes stay in the reference, its answer is 410."""

from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation

TAG = "Removed"
PREFIXES = ("/v1/runs", "/v1/specs")


class Transition(Shape):
    state_from: str
    state_to: str
    actor: str
    reason_code: str
    ts: int


class Artifact(Shape):
    artifact_name: str
    object_key: str
    checksum_sha256: str
    producer: str
    attempt: int
    created_at: int


class PolicyEvent(Shape):
    action_class: str
    decision: str
    rule_id: str
    actor: str
    ts: int


class Run(Shape):
    run_id: UUID
    workspace_id: UUID
    spec_id: UUID
    current_state: str
    attempt: int
    mode: Literal["pull_request"]
    requested_by: str
    branch: str
    created_at: int
    updated_at: int
    transitions: list[Transition]
    artifacts: list[Artifact]
    policy_events: list[PolicyEvent]
    pr_url: Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri"})] | None


class Retry(Body):
    reason: str
    """For people to read."""
    retry_token: str
    """The same value for each try of one request."""


class RunRetried(Shape):
    run_id: UUID
    state: str
    attempt: int


def gone() -> Problem:
    return Problem("UZ-RUNS-410", "the run pipeline was removed; agent events took its place")


@operation(
    "GET",
    "/v1/runs/{run_id}",
    tag=TAG,
    auth=Auth.PUBLIC,
    answer=Run,
    codes=("UZ-RUNS-410",),
    deprecated=True,
    no_io=True,
)
async def get_run(call: Call[NoBody, NoQuery]) -> Any:
    """Answer 410: the run pipeline was removed."""
    del call
    raise gone()


@operation(
    "POST",
    "/v1/runs/{run_id}:retry",
    tag=TAG,
    auth=Auth.PUBLIC,
    answer=RunRetried,
    documented_body=Retry,
    codes=("UZ-RUNS-410",),
    deprecated=True,
    no_io=True,
)
async def retry_run(call: Call[NoBody, NoQuery]) -> Any:
    """Answer 410: the run pipeline was removed."""
    del call
    raise gone()


@operation("GET", "/v1/specs", tag=TAG, auth=Auth.PUBLIC, codes=("UZ-RUNS-410",), deprecated=True, no_io=True)
async def list_specs(call: Call[NoBody, NoQuery]) -> None:
    """Answer 410: the run pipeline was removed."""
    del call
    raise gone()


@operation(
    "POST", "/v1/specs", tag=TAG, auth=Auth.PUBLIC, codes=("UZ-RUNS-410",), deprecated=True, no_io=True
)
async def submit_spec(call: Call[NoBody, NoQuery]) -> None:
    """Answer 410: the run pipeline was removed."""
    del call
    raise gone()
