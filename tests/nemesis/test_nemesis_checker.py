"""The judge of histories finds each planted fault by the rule that is about it, and passes what is well."""

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nemesis.checker import __main__ as command, edn
from tests.nemesis.checker.history import INVOKE, OK, UNKNOWN, Entry, NotAHistory, read, write
from tests.nemesis.checker.rules import RULES, check
from tests.nemesis.checker.seen import READS

CHECKER = Path(command.__file__).parent
ALLOWED = {"argparse", "__future__", "json", "collections", "pathlib", "typing", "itertools", "sys", "bisect"}


class Told:
    """A history in the making, one operation after the other; ``rows`` are what is read at its end."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in READS}
        self._now = 0
        self._ops = 0

    def act(self, f: str, value: dict[str, Any], answer: dict[str, Any], kind: str = OK) -> None:
        self._ops += 1
        for one, said in ((INVOKE, value), (kind, answer)):
            self._now += 1
            self.entries.append(Entry(self._ops, 0, one, f, self._now, said))

    def shift(self, by: int) -> None:
        """What follows has higher numbers and is later."""
        self._now += by
        self._ops += by

    def done(self) -> list[Entry]:
        for name, rows in self.rows.items():
            # On two pages, as a run of any length has many.
            for page in (rows[:1], rows[1:]):
                self.act(f"read-{name}", {}, {"rows": page})
        return self.entries


def grant(told: Told, token: int, event: str) -> None:
    lease = {"agent": "a", "token": token, "lease": f"l{token}", "event": event, "attempt": 1}
    told.act("grant", {}, {"leases": [lease]})


def renew(told: Told, *leases: str, number: int = 1, charged: int = 5) -> None:
    slices = {lease: [number, charged] for lease in leases}
    told.act("renew-batch", {"asked": len(leases)}, {"slices": slices, "refused": {}})


def send(told: Told, delivery: str, answer: dict[str, Any], kind: str = OK) -> None:
    told.act("send", {"tenant": "t", "agent": "a", "delivery": delivery}, answer, kind)


def metered(event: str, number: int, charged: int) -> dict[str, Any]:
    return {"tenant": "t", "event": event, "attempt": 1, "slice": number, "charged": charged}


def follow(told: Told, after: int | None, *ranges: list[int], **changes: Any) -> None:
    seen = {"ranges": list(ranges), "ends": {}, "resync": False} | changes
    told.act("follow", {"agent": "a", "after": after}, seen)


def report(told: Told, token: int, event: str) -> None:
    told.act("report", {"agent": "a", "token": token, "event": event}, {"status": "processed"})


def good() -> Told:
    """Two events of one agent, a delivery that was sent twice, a gate that two people answer."""
    told = Told()
    send(told, "d1", {}, UNKNOWN)
    send(told, "d1", {"event": "e1"})
    send(told, "d2", {"event": "e2"})
    for token, event in ((1, "e1"), (2, "e2")):
        grant(told, token, event)
        renew(told, f"l{token}")
        if token == 1:
            asked = {"agent": "a", "token": 1, "event": "e1", "action": "x"}
            told.act("open-gate", asked, {"gate": "g"})
            told.act("decide", {"gate": "g", "wants": "approved"}, {"status": "approved", "first": True})
            told.act("decide", {"gate": "g", "wants": "denied"}, {"status": "approved", "first": False})
            told.act("read-gate", {"gate": "g"}, {"status": "approved"})
        report(told, token, event)
        row = {"event": event, "tenant": "t", "agent": "a", "delivery": f"d{token}"}
        told.rows["events"].append(row | {"status": "processed", "charged": 5})
        lease = {"agent": "a", "token": token, "event": event, "status": "reported"}
        told.rows["leases"].append(lease | {"granted": token * 10, "ended": token * 10 + 9})
    follow(told, None, [3, 7], ends={"e1": "processed"})
    follow(told, 7, [8, 9])
    told.rows["money"] = [
        {"tenant": "t", "given": 100, "balance": 90},
        {"tenant": "other", "given": 7, "balance": 7},
    ]
    told.rows["metering"] = [metered("e1", 1, 5), metered("e2", 1, 5)]
    told.rows["gates"] = [{"gate": "g", "event": "e1", "action": "x", "status": "approved"}]
    return told


def acknowledged_is_lost(told: Told) -> None:
    del told.rows["events"][1]


def delivery_is_two_events(told: Told) -> None:
    told.rows["events"].append(told.rows["events"][0] | {"event": "e3", "charged": 0})


def retry_is_told_another_event(told: Told) -> None:
    send(told, "d1", {"event": "e2"})


def event_goes_to_another_agent(told: Told) -> None:
    told.rows["events"][1]["agent"] = "b"


def event_goes_to_another_tenant(told: Told) -> None:
    told.rows["events"][1]["tenant"] = "other"


def event_never_ends(told: Told) -> None:
    told.rows["events"][1]["status"] = "running"


def report_is_forgotten(told: Told) -> None:
    told.rows["events"][1]["status"] = "agent_error"


def two_leases_report(told: Told) -> None:
    told.rows["leases"].append(
        told.rows["leases"][1] | {"token": 3, "granted": 40, "ended": 49},
    )


def second_begins_first(told: Told) -> None:
    first, second = told.rows["leases"]
    first["event"], second["event"] = "e2", "e1"


def leases_overlap(told: Told) -> None:
    told.rows["leases"][0]["ended"] = 21


def lease_never_ends(told: Told) -> None:
    told.rows["leases"][0]["ended"] = None


def token_is_granted_twice(told: Told) -> None:
    told.act("grant", {}, {"leases": [{"agent": "a", "token": 2, "lease": "other", "event": "e2"}]})


def token_falls(told: Told) -> None:
    grant(told, 1, "e1")


def rows_fall(told: Told) -> None:
    told.rows["leases"][1]["granted"] = 1


def old_token_renews(told: Told) -> None:
    renew(told, "l1")


def old_token_renews_among_others(told: Told) -> None:
    renew(told, "l2", "l1")


def old_token_reports(told: Told) -> None:
    report(told, 1, "e1")


def debit_is_doubled(told: Told) -> None:
    told.rows["money"][0]["balance"] -= 5


def slice_is_metered_twice(told: Told) -> None:
    told.rows["metering"].append(metered("e2", 1, 0))


def event_says_another_price(told: Told) -> None:
    told.rows["events"][0]["charged"] = 4


def another_tenant_pays(told: Told) -> None:
    told.rows["money"][0]["balance"] += 5
    told.rows["money"][1]["balance"] -= 5


def slice_is_charged_to_a_tenant_that_is_not_there(told: Told) -> None:
    told.rows["metering"].append(metered("e3", 1, 5) | {"tenant": "nobody"})


def renewal_is_not_metered(told: Told) -> None:
    renew(told, "l2", number=2)


def renewal_was_told_another_price(told: Told) -> None:
    renew(told, "l2", charged=4)


def frame_is_left_out(told: Told) -> None:
    follow(told, 9, [10, 11], [13, 13])


def frame_comes_again(told: Told) -> None:
    follow(told, 9, [9, 10])


def frames_are_pruned_too_early(told: Told) -> None:
    follow(told, 9, resync=True)


def end_that_was_shown_is_not_true(told: Told) -> None:
    follow(told, 9, [10, 10], ends={"e2": "agent_error"})


def gate_changes_its_mind(told: Told) -> None:
    told.rows["gates"][0]["status"] = "denied"


def action_has_two_gates(told: Told) -> None:
    told.rows["gates"].append(told.rows["gates"][0] | {"gate": "other"})


def gate_is_lost(told: Told) -> None:
    told.rows["gates"].clear()


def gate_stays_open(told: Told) -> None:
    told.rows["gates"][0]["status"] = "pending"


PLANTED: tuple[tuple[Callable[[Told], None], str], ...] = (
    (acknowledged_is_lost, "each_accepted_once"),
    (delivery_is_two_events, "each_accepted_once"),
    (retry_is_told_another_event, "each_accepted_once"),
    (event_goes_to_another_agent, "each_accepted_once"),
    (event_goes_to_another_tenant, "each_accepted_once"),
    (event_never_ends, "each_ended"),
    (report_is_forgotten, "no_end_is_forgotten"),
    (two_leases_report, "no_end_is_forgotten"),
    (second_begins_first, "order_of_agent"),
    (leases_overlap, "one_live_lease"),
    (lease_never_ends, "one_live_lease"),
    (token_is_granted_twice, "fencing_grows"),
    (token_falls, "fencing_grows"),
    (rows_fall, "fencing_grows"),
    (old_token_renews, "no_old_token_writes"),
    (old_token_renews_among_others, "no_old_token_writes"),
    (old_token_reports, "no_old_token_writes"),
    (debit_is_doubled, "every_cent_once"),
    (slice_is_metered_twice, "every_cent_once"),
    (event_says_another_price, "every_cent_once"),
    (another_tenant_pays, "every_cent_once"),
    (slice_is_charged_to_a_tenant_that_is_not_there, "every_cent_once"),
    (renewal_is_not_metered, "every_cent_once"),
    (renewal_was_told_another_price, "every_cent_once"),
    (gate_changes_its_mind, "gate_once"),
    (action_has_two_gates, "gate_once"),
    (gate_is_lost, "gate_once"),
    (gate_stays_open, "gate_once"),
    (frame_is_left_out, "streams_are_whole"),
    (frame_comes_again, "streams_are_whole"),
    (frames_are_pruned_too_early, "streams_are_whole"),
    (end_that_was_shown_is_not_true, "streams_are_whole"),
)


@pytest.mark.parametrize(("plant", "rule"), PLANTED, ids=lambda one: getattr(one, "__name__", one))
def test_a_planted_fault_is_found_by_its_rule(plant: Callable[[Told], None], rule: str) -> None:
    told = good()
    plant(told)

    assert rule in check(told.done())


def test_every_rule_has_a_planted_fault() -> None:
    assert {rule for _, rule in PLANTED} == {rule.__name__ for rule in RULES}


def test_a_history_without_fault_passes() -> None:
    assert check(good().done()) == {}


def test_a_report_that_comes_again_is_no_old_write() -> None:
    told = good()
    again = {"agent": "a", "token": 1, "event": "e1"}
    told.act("report", again, {"status": "processed", "duplicate": True})

    assert check(told.done()) == {}


def test_a_try_without_an_answer_may_be_the_one_that_counts_for_the_order() -> None:
    told = good()
    told.entries = [entry._replace(op=entry.op + 100, time_ns=entry.time_ns + 100) for entry in told.entries]
    told.shift(100)
    # Its first try, long before, had no answer, and was kept; so it may begin first.
    told.entries.insert(0, Entry(1, 1, UNKNOWN, "send", 2, {}))
    told.entries.insert(0, Entry(1, 1, INVOKE, "send", 1, {"tenant": "t", "agent": "a", "delivery": "d2"}))
    second_begins_first(told)

    assert "order_of_agent" not in check(told.done())


def test_what_was_not_read_at_the_end_is_not_judged() -> None:
    with pytest.raises(NotAHistory, match="nobody read the events"):
        check(good().entries)


def test_an_operation_that_ends_twice_is_no_history() -> None:
    entries = good().done()

    with pytest.raises(NotAHistory, match="or twice"):
        check([*entries, entries[-1]])


def test_a_renewal_of_a_lease_that_nobody_was_granted_is_no_history() -> None:
    told = good()
    renew(told, "unknown")

    with pytest.raises(NotAHistory, match="lease unknown was renewed"):
        check(told.done())


def test_a_kept_history_is_judged_by_the_command_and_told_to_other_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = good()
    debit_is_doubled(told)
    entries = told.done()
    file, folder = tmp_path / "history.jsonl", tmp_path / "edn"
    write(entries, file)
    monkeypatch.setattr(sys, "argv", ["checker", str(file), "--edn", str(folder)])

    status = command.main()

    printed = capsys.readouterr().out
    elle, knossos = ((folder / f"{name}.edn").read_text() for name in ("elle", "knossos"))

    assert (status, list(read(file))) == (1, entries)
    assert "every_cent_once: 1 violations\n  tenant t: 10 was metered, and 15 is gone" in printed
    assert '{:type :invoke, :f :txn, :value [[:append "a" "d2"]], :process 0, :time 5}' in elle
    assert '{:type :ok, :f :txn, :value [[:r "a" ["d2"]]], :process 1,' in elle
    assert '{:type :fail, :f :cas, :value ["g" [:pending :denied]], :process 0,' in knossos


def test_a_file_that_is_no_history_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "history.jsonl"
    file.write_text(json.dumps({"op": 1}) + "\n")
    monkeypatch.setattr(sys, "argv", ["checker", str(file)])

    status = command.main()

    assert status == 2
    assert "cannot be judged: line 1" in capsys.readouterr().err


def test_an_empty_history_has_no_lines_for_other_judges() -> None:
    assert (list(edn.elle([])), list(edn.knossos([]))) == ([], [])


def test_the_checker_shares_no_code_with_the_product() -> None:
    for file in CHECKER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert name.startswith("tests.nemesis.checker") or name.partition(".")[0] in ALLOWED
