"""What a run asks for besides its lease, decided without its actor: gates, frames, follow-ups, grants."""

from typing import Any

import pytest
from msgspec.structs import replace

from sexton_actors.lease.transitions import approvals, follow_ups, integrations, shadows
from sexton_actors.lease.transitions.activity import CONNECTION, activity
from sexton_actors.lease.transitions.chunks import coalesced
from sexton_actors.manifest.model import Manifest, NetworkRule, WorkspaceKind
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.writes import AppendFrames, OpenGate
from tests.worlds.lease_samples import (
    AGENT,
    EVENT,
    GATE,
    GATE_ID,
    IT,
    LEASE,
    NOW,
    RUNNER,
    STATE,
)


def test_a_gate_is_opened_with_the_frame_that_shows_it() -> None:
    gate = replace(
        GATE, tool_name="sh", action_name="run", proposed_action="rm", status=GateStatus.PENDING, timeout_at=9
    )
    closed = replace(gate, status=GateStatus.DENIED, resolved_by="policy")
    data = {
        "gate_id": str(GATE_ID),
        "action_id": "deploy",
        "tool_name": "sh",
        "action_name": "run",
        "proposed_action": "rm",
        "timeout_at": 9,
    }

    assert approvals.open_gate(STATE, gate, NOW) == OpenGate(
        gate, 5, (NewFrame(AGENT, EVENT, "gate_pending", NOW, data),)
    )

    data |= {"status": "denied", "resolved_by": "policy"}
    assert approvals.open_gate(STATE, closed, NOW) == OpenGate(
        closed, 5, (NewFrame(AGENT, EVENT, "gate_resolved", NOW, data),)
    )


def test_frames_are_stamped_within_the_run() -> None:
    said = tuple(
        m.FrameIn("tool_call_progress", at, {"name": "x"}) for at in (None, NOW - 50_000, NOW - 5, NOW + 9)
    )
    found = activity(STATE, m.Activity(RUNNER, said, 5), NOW)
    foreign = activity(STATE, m.Activity(RUNNER, (said[0], m.FrameIn("event_complete", 1, {})), 5), NOW)
    late = activity(STATE, m.Activity(RUNNER, said, 4), NOW)
    frames = tuple(
        NewFrame(AGENT, EVENT, "tool_call_progress", at, {"name": "x"})
        for at in (NOW, NOW - 40_000, NOW - 5, NOW)
    )

    assert found == AppendFrames(AGENT, frames, IT, 5)
    assert CONNECTION == "connection", "what the actor counts"
    assert isinstance(foreign, Refusal)
    assert (foreign.code, foreign.detail.partition(":")[0]) == ("UZ-REQ-001", "/frames/1/kind")
    assert isinstance(late, Refusal)
    assert late.code == "UZ-RUN-005"


@pytest.mark.parametrize(
    ("text", "is_kept"), [("", False), ("x", True), ("x" * 8_192, True), ("x" * 8_193, False)]
)
def test_a_follow_up_has_a_message_of_its_size(text: str, is_kept: bool) -> None:
    found = follow_ups.follow_up(LEASE, GATE_ID, "call", text, at=9, now=NOW)
    kept = FollowUp(GATE_ID, AGENT, EVENT, "call", text, 9, NOW)

    assert (found.code if isinstance(found, Refusal) else found) == (kept if is_kept else "UZ-REQ-001")
    assert isinstance(follow_ups.follow_up(LEASE, GATE_ID, "c", "\ud800", at=9, now=NOW), FollowUp)


@pytest.mark.parametrize(
    ("delay_s", "at", "told"),
    [
        (60, None, NOW + 60_000),
        (59, None, "/delay_s"),
        (2_592_000, None, NOW + 2_592_000_000),
        (2_592_001, None, "/delay_s"),
        (None, NOW + 60_000, NOW + 60_000),
        (None, NOW + 59_999, "/at"),
        (None, NOW + 2_592_000_000, NOW + 2_592_000_000),
        (None, NOW + 2_592_000_001, "/at"),
        (60, NOW + 60_000, "/at"),
        (None, None, "/at"),
    ],
)
def test_a_follow_up_comes_between_a_minute_and_thirty_days(
    delay_s: int | None, at: int | None, told: int | str
) -> None:
    found = follow_ups.moment(delay_s, at, NOW)

    assert (found.detail.partition(":")[0] if isinstance(found, Refusal) else found) == told


def test_a_grant_is_used_once_a_person_has_approved_it() -> None:
    grant = Grant(GATE_ID, IT, IT, AGENT, "slack", "why", GrantStatus.APPROVED, 1, 1, "user:1", 1)
    facts = {"grant_id": str(GATE_ID), "service": "slack", "status": "approved"}
    told = [integrations.may_use(replace(grant, status=status), "slack") for status in GrantStatus]
    refused = {one.facts["status"]: one.code for one in told if isinstance(one, Refusal)}

    assert integrations.may_use(grant, "slack") is grant
    assert refused == {"pending": "UZ-GRANT-002", "denied": "UZ-GRANT-003", "revoked": "UZ-GRANT-003"}
    assert integrations.used(grant, EVENT, NOW) == NewFrame(AGENT, EVENT, "grant_used", NOW, facts)


def test_a_shadow_run_is_refused_all_effects() -> None:
    found = shadows.may_take_effect(replace(LEASE, shadow=True))

    assert shadows.may_take_effect(LEASE) is None
    assert found is not None
    assert found.code == "UZ-SHADOW-001"


def test_pieces_of_text_are_joined_up_to_their_bound() -> None:
    def said(*texts: str, kind: str = "chunk", **more: Any) -> tuple[NewFrame, ...]:
        return tuple(
            NewFrame(AGENT, EVENT, kind, at, {"text": text, **more}) for at, text in enumerate(texts)
        )

    half = "x" * 4_096
    other = said("a", "b", kind="note") + said("a", "b", more=1)
    three = coalesced(said("a", half, half, "b"))

    assert [frame.data["text"] for frame in coalesced(said(half, half))] == [half * 2]
    assert [frame.data["text"] for frame in three] == ["a" + half, half + "b"]
    assert [frame.at_ms for frame in three] == [0, 2]
    assert coalesced(other) == other
    assert coalesced(said("a"))[0].data == {"text": "a"}


def test_a_shadow_run_is_told_of_nothing_that_it_could_reach() -> None:
    manifest = Manifest("x", "x", "1.0.0", "", (), tools=("shell", "mcp__x"), network_allow=("a.org",))
    full = replace(
        manifest,
        credentials=("c",),
        integrations=("slack",),
        mcp_servers=("x",),
        network_rules=(NetworkRule("b.org", (8443,)),),
        workspace=WorkspaceKind.KEEP,
        env={"A": "1", "B": "${secrets.c.d}"},
    )
    quiet = shadows.without_effects(full)

    assert quiet == replace(manifest, tools=("shell",), network_allow=(), env={"A": "1"})
