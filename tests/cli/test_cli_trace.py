"""``sexton trace`` draws an event's spans, and fails where their costs are not what the event was charged."""

from contextlib import nullcontext
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner, Result

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.commands import trace
from tests.cli.test_cli_streams import Server

EVENT = "019363b0-0000-7000-8000-000000000001"


def span(name: str, parent: str | None, began: int, ended: int, cost: int = 0, **more: Any) -> dict[str, Any]:
    given = {"attributes": {}, "events": [], "fault": None, **more}
    times = {"began_at": began, "ended_at": ended}
    return {"span_id": name, "parent_id": parent, "name": name, "cost_nanos": cost, **times, **given}


SPANS = [
    span("event", "of-the-sender", 0, 12_000),
    span("wait", "event", 0, 3_000, attributes={"sexton.lease.attempt": 1}),
    span(
        "lease",
        "event",
        3_000,
        12_000,
        700,
        attributes={"sexton.lease.attempt": 1},
        events=[{"name": "renewed", "at": 4_000, "attributes": {}}],
    ),
    span("invoke_agent doctor", "lease", 3_000, 11_950),
    span("chat large", "invoke_agent doctor", 3_000, 6_000, 300),
    span("execute_tool ls", "invoke_agent doctor", 6_000, 6_040, fault="tool_failed"),
    span("report", "lease", 11_950, 12_000),
]
DRAWN = """\
SPAN                                    WHEN                      TOOK    COST
event                                   ████████████████████████  12.0 s
├─ wait 1                               ██████                    3.0 s
└─ lease 1, 1 renewal                         ██████████████████  9.0 s   $0.0000007
   ├─ invoke_agent doctor                     ██████████████████  8.9 s
   │  ├─ chat large                           ██████              3.0 s   $0.0000003
   │  └─ execute_tool ls (tool_failed)              █             40 ms
   └─ report                                                   █  50 ms
"""


@pytest.fixture(name="ran")
def _ran(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(short_ids, "workspace_path", lambda *_: "/v1/workspaces/w")

    def run(**changes: Any) -> Result:
        told = {"trace_id": "4bf92f35", "status": "processed", "ended": True, "cut": False, "spans": SPANS}
        body = {**told, "charged_nanos": 1_000, "cost_nanos": 1_000, **changes}
        server = Server(httpx2.Response(200, json=body))
        monkeypatch.setattr(Caller, "client", lambda _: nullcontext(server.client))
        return CliRunner().invoke(trace.trace, [EVENT])

    return run


def test_an_event_is_drawn_with_its_cost_beside_the_bill(ran: Any) -> None:
    done = ran()

    assert done.exit_code == 0, done.output
    assert DRAWN in done.stdout
    assert done.stdout.endswith(
        "\n\nAll spans together cost $0.000001 (1000 nanos), which is what the event was charged.\n"
    )


def test_a_sum_that_is_not_the_bill_is_a_failure(ran: Any) -> None:
    wrong, going, cut = ran(cost_nanos=999), ran(cost_nanos=999, ended=False), ran(cut=True)

    assert wrong.exit_code == 1
    assert "the spans cost 999 nanos, and the event was charged 1000" in str(wrong.exception) + wrong.output
    assert going.exit_code == 0
    assert "it goes on" in going.stdout
    assert cut.exit_code == 0
    assert "more spans than are shown" in cut.stderr


def test_an_event_without_spans_is_no_failure(ran: Any) -> None:
    done = ran(spans=[], charged_nanos=0, cost_nanos=0)

    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("trace ")
