"""What a parked run leaves behind can be read again, and nothing else is mistaken for it."""

import pytest

from sexton_runner.checkpoint import (
    MAX_REMEMBERED_GATES,
    ActionName,
    Checkpoint,
    Counter,
    Remembered,
    action_id,
    as_object,
    decode,
    encode,
)


def test_a_checkpoint_survives_the_wire() -> None:
    checkpoint = (
        Checkpoint()
        .remember("act_1", Remembered("g1", "approved", "fine"))
        .remember("act_2", Remembered("g2", "pending"))
    )
    assert decode(encode(checkpoint)) == checkpoint


@pytest.mark.parametrize(
    "value", [None, "", "{", "[]", 5, [], {"version": 2, "gates": {}}, {"gates": {"a": 1}}]
)
def test_what_is_no_checkpoint_counts_as_none(value: object) -> None:
    assert decode(value) == Checkpoint()


def test_a_gate_that_is_resolved_replaces_the_pending_one() -> None:
    checkpoint = (
        Checkpoint().remember("a", Remembered("g", "pending")).remember("a", Remembered("g", "denied"))
    )
    assert checkpoint.gates == {"a": Remembered("g", "denied")}


def test_the_oldest_gates_are_forgotten_when_there_are_too_many() -> None:
    checkpoint = Checkpoint()
    for number in range(MAX_REMEMBERED_GATES + 2):
        checkpoint = checkpoint.remember(str(number), Remembered("g", "approved"))

    assert len(checkpoint.gates) == MAX_REMEMBERED_GATES
    assert "1" not in checkpoint.gates
    assert "2" in checkpoint.gates


def test_the_same_asks_of_an_event_have_the_same_ids_in_every_run() -> None:
    def ids(event_id: str) -> list[str]:
        counter = Counter()
        asks = [("deploy", "rollback"), ("deploy", "rollback"), ("deploy", "hold")]
        return [action_id(event_id, counter.name(tool, action)) for tool, action in asks]

    assert ids("e1") == ids("e1")
    assert len({*ids("e1"), *ids("e2")}) == 6


def test_names_cannot_be_pushed_together_into_one_another() -> None:
    assert action_id("e", ActionName("ab", "c", 0)) != action_id("e", ActionName("a", "bc", 0))


def test_evidence_that_is_no_object_is_kept_as_text() -> None:
    assert as_object(b"[1]") == {"text": "[1]"}
    assert as_object(b"\xff") == {"text": "\N{REPLACEMENT CHARACTER}"}
