"""Traces: from the sender's span to the report, with the bill to the nano; a collector that misbehaves."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import UUID

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from sexton_actors.catalogue import Catalogue
from sexton_actors.protocol.lease import Revoke
from sexton_actors.traces.content import ContentMode
from sexton_actors.traces.context import AGENT, EVENT, LEASE, span_id
from sexton_http.outbound import trace_export
from sexton_http.outbound.trace_address import read_endpoint
from sexton_http.outbound.trace_export import MOST_WAITING, TraceExporter, open_traces
from sexton_http.routes import event_traces
from sexton_storage.postgres import PostgresStorage
from tests.fakes.collector import Collector, Misbehave, open_collector
from tests.http.test_http_continuation import NOTE, report_of
from tests.http.test_http_model_chain import CHAIN, MODELS
from tests.http.test_http_models_and_keys import KEYS
from tests.http.test_http_transcripts import write
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world_on

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SENDER: Final = "00f067aa0ba902b7"
SENT: Final = f"00-{TRACE}-{SENDER}-01"
USED: Final = {"input_tokens": 10, "cached_input_tokens": 4, "cache_write_tokens": 6, "output_tokens": 8}
PART: Final = {"input_tokens": 3, "cached_input_tokens": 1, "cache_write_tokens": 2, "output_tokens": 5}
FIRST: Final = {name: USED[name] - PART[name] for name in USED}
SAYS: Final = "I look at the disk of db-7."
PATH: Final = "/var/log/secret-place"


@asynccontextmanager
async def tracing(
    world: HttpWorld, base_url: str, content: ContentMode = ContentMode.NONE
) -> AsyncIterator[TraceExporter]:
    address = read_endpoint(base_url, "x-api-key=abc", content)
    known = world.actors_world
    async with open_traces(known.storage, known.meters, address, {"service.name": "sexton"}, "1") as exporter:
        object.__setattr__(known, "traces", exporter)
        yield exporter


def counted(world: HttpWorld) -> dict[str, int]:
    meters = world.actors_world.meters
    return {name: count for name, count in (meters.spans + meters.trace_ends).items() if count}


async def offer_models(world: HttpWorld) -> None:
    made = await world.post("/v1/workspaces", {"name": "keys"})
    source = made.json()["workspace_id"]
    for provider in ("anthropic", "openai"):
        key = {"name": f"{provider}_api_key", "data": {"api_key": f"sk-{provider}"}}
        assert (await world.post(f"/v1/workspaces/{source}/credentials", key)).status_code == 201
        body = {"provider": provider, "source_workspace_id": source}
        assert (await world.call("PUT", KEYS, json=body)).status_code == 200


def entries() -> list[dict[str, Any]]:
    """A run that asks two models and calls two tools, one of which never ends."""
    told = [
        ("prompt", {"role": "system", "text": "Be brief."}),
        ("prompt", {"role": "user", "text": "The build of main failed."}),
        (
            "model",
            {"model": "large", "provider": "anthropic", "ms": 0, "text": SAYS, "stop": "tool_use", **FIRST}
            | {"tool_calls": [{"id": "c1", "name": "read_file"}]},
        ),
        ("tool_call", {"id": "c1", "name": "read_file", "arguments": {"path": PATH}}),
        ("tool_result", {"id": "c1", "name": "read_file", "ok": False, "ms": 1, "content": "no such file"}),
        ("model", {"model": "other", "provider": "openai", "text": "Done.", "stop": "end", **PART}),
        ("step", {"what": "end", "name": "check", "ms": 0, "ok": True}),
        ("tool_call", {"id": "c2", "name": "python", "arguments": [1]}),
        # What no runner of ours would say.
        ("tool_result", {"id": 7, "ok": "x", "content": ["x"]}),
        ("end", {"outcome": "processed"}),
    ]
    return [{"number": place, "kind": kind, "data": data} for place, (kind, data) in enumerate(told, 1)]


async def run_twice(world: HttpWorld, traceparent: str) -> tuple[str, list[dict[str, Any]]]:
    """An event whose first runner dies, and whose second one asks a person and reports; its id and leases."""
    await world.keep_secret()
    zombie = await world.install(config=CHAIN)
    delivered = await world.deliver(zombie["webhook_urls"]["github"], traceparent=traceparent)
    token = await world.enrol()
    dead = await world.lease(token)
    at = f"/v1/runners/me/leases/{dead['lease_id']}"
    assert (await world.post(f"{at}/renew", {**FIRST}, token)).status_code == 200
    world.system.tell("lease", UUID(dead["lease_id"]), Revoke("died"))

    lease = await world.lease(token)
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    assert (await write(world, token, lease, *entries())).status_code == 202
    assert (await world.post(f"{at}/renew", {**USED, "fallbacks": [PART]}, token)).status_code == 200
    ask = {"action_id": "a1", "tool_name": "http", "action_name": f"POST {PATH}"}
    gate = (await world.post(f"{at}/gates", ask, token)).json()
    decided = await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", {"reason": "fine"})
    assert decided.status_code == 200
    report = report_of(lease, **USED, fallbacks=[PART])
    assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200
    return delivered.json()["event_id"], [dead, lease]


async def test_a_trace_goes_from_the_senders_span_to_the_report_and_its_costs_are_the_bill(
    postgres_storage: PostgresStorage,
) -> None:
    link = "https://traces.example.com/t/{trace_id}?from=sexton"
    catalogue = Catalogue("2026-11-20", MODELS)
    async with (
        open_collector() as collector,
        open_http_world_on(postgres_storage, catalogue=catalogue, trace_link=link) as world,
    ):
        await offer_models(world)
        async with tracing(world, collector.base_url) as exporter:
            event_id, leases = await run_twice(world, SENT)
            await collector.until(lambda got: "event" in got.names())
            await exporter._idle.wait()
            told = counted(world)
        shown = (await world.get(f"{world.ws}/events/{event_id}")).json()
        drawn = (await world.get(f"{world.ws}/events/{event_id}/trace")).json()
        check_tree(collector, UUID(event_id), leases)
        check_costs(collector, shown)
        check_answer(collector, drawn)
        assert (told["made"], told["sent"], "lost" in told) == (2, len(collector.spans), False)

        await check_exemplar(world)
        assert (collector.headers["x-api-key"], collector.resource) == ("abc", {"service.name": "sexton"})
        assert (shown["trace_id"], shown["links"]["trace"]) == (TRACE, link.replace("{trace_id}", TRACE))

        # The same again in each mode: the same spans, and as much of the content as is said.
        bare = {span.span_id: span for span in collector.spans}
        told_by_mode = {}
        for mode in ContentMode:
            collector.spans.clear()
            async with tracing(world, collector.base_url, mode) as exporter:
                exporter.ended(UUID(event_id), 1, over=False)
                exporter.ended(UUID(event_id), 2, over=True)
            assert {span.span_id for span in collector.spans} == bare.keys()
            assert collector.cost() == shown["charged_nanos"]
            told_by_mode[mode] = repr(collector.spans)

    assert [SAYS in told_by_mode[mode] for mode in ContentMode] == [False, False, True]
    assert [PATH in told_by_mode[mode] for mode in ContentMode] == [False, True, True], "a gate's action"
    assert "'sexton.content.input_chars'" in told_by_mode[ContentMode.METADATA]
    assert "Be brief." in told_by_mode[ContentMode.FULL]


def check_tree(got: Collector, event_id: UUID, leases: list[dict[str, Any]]) -> None:
    assert {span.trace_id for span in got.spans} == {TRACE}
    assert len({span.span_id for span in got.spans}) == len(got.spans)
    assert got.names() == Counter(
        {
            "event": 1,
            "wait": 2,
            "lease": 2,
            "invoke_agent doctor": 2,
            "chat large": 1,
            "chat other": 1,
            "execute_tool read_file": 1,
            "execute_tool python": 1,
            "step": 1,
            "gate": 1,
            "report": 1,
        }
    )
    event = got.named("event")
    assert (event.parent_id, event.span_id, event.kind) == (SENDER, span_id(event_id, EVENT), 5)
    run = ["event", "lease", "invoke_agent doctor"]
    for name in ("chat large", "chat other", "execute_tool read_file", "gate", "step"):
        assert got.path(got.named(name)) == [*run, name]
    assert got.path(got.named("report")) == ["event", "lease", "report"]
    assert all(event.began_ns <= span.began_ns <= span.ended_ns for span in got.spans)

    dead, lease = (span for span in got.spans if span.name == "lease")
    assert (dead.span_id, lease.span_id) == (span_id(event_id, LEASE, 1), span_id(event_id, LEASE, 2))
    assert (dead.fault, lease.fault) == ("runner_lost", "")
    assert ([name for name, _ in dead.events], [name for name, _ in lease.events]) == (
        ["renewed", "reclaimed"],
        ["renewed", "renewed"],
    )
    assert [one["traceparent"] for one in leases] == [
        f"00-{TRACE}-{span_id(event_id, AGENT, attempt)}-01" for attempt in (1, 2)
    ]
    assert leases[0]["event"]["traceparent"] == SENT

    chat = got.named("chat large").attributes
    assert (
        chat.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "large",
            "gen_ai.response.finish_reasons": ("tool_use",),
            "gen_ai.usage.input_tokens": 7 + 3 + 4,
            "gen_ai.usage.cache_read.input_tokens": 3,
            "gen_ai.usage.cache_creation.input_tokens": 4,
            "gen_ai.usage.output_tokens": 3,
        }.items()
    )
    tool = got.named("execute_tool read_file")
    assert tool.attributes["gen_ai.tool.call.id"] == "c1"
    assert (tool.fault, got.named("execute_tool python").fault) == ("tool_failed", "abandoned")
    assert got.named("gate").attributes["sexton.gate.status"] == "approved"


async def check_exemplar(world: HttpWorld) -> None:
    """The wait for the first lease leads to the trace, for those who read OpenMetrics."""
    accepted = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
    shown = await world.get("/metrics", None, headers=accepted)
    plain = await world.get("/metrics", None)
    families = {one.name: one for one in text_string_to_metric_families(shown.text)}  # type: ignore[no-untyped-call]
    found = [
        sample.exemplar.labels
        for sample in families["sexton_ingress_to_lease_seconds"].samples
        if sample.exemplar is not None
    ]

    assert shown.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert found == [{"trace_id": TRACE}]
    assert plain.headers["content-type"].startswith("text/plain")
    assert TRACE not in plain.text


def check_costs(got: Collector, shown: dict[str, Any]) -> None:
    # By hand: 7 x 3000 + 3 x 1000 + 4 x 4000 + 3 x 15000, and 3 x 2000 + 1 x 1000 + 2 x 2000 + 5 x 8000.
    costs = [got.named(name).attributes["sexton.cost.nanos"] for name in ("chat large", "chat other")]
    assert costs == [85_000, 51_000]
    assert got.cost() == shown["charged_nanos"] == got.named("event").attributes["sexton.event.charged_nanos"]
    assert sum(lease["charged_nanos"] for lease in shown["leases"]) == got.cost()


def check_answer(got: Collector, drawn: dict[str, Any]) -> None:
    """The route tells what the collector got, in the order in which it can be drawn."""
    told = {
        one["span_id"]: (
            one["parent_id"] or "",
            one["name"],
            one["began_at"],
            one["cost_nanos"],
            one["fault"],
        )
        for one in drawn["spans"]
    }
    places = {one["span_id"]: place for place, one in enumerate(drawn["spans"])}

    assert told == {
        one.span_id: (
            one.parent_id or None,
            one.name,
            one.began_ns // 1_000_000,
            one.attributes["sexton.cost.nanos"],
            one.fault or None,
        )
        for one in got.spans
    }
    assert drawn["cost_nanos"] == drawn["charged_nanos"] == got.cost() > 0
    assert (drawn["trace_id"], drawn["ended"], drawn["cut"]) == (TRACE, True, False)
    assert drawn["spans"][0]["name"] == "event"
    above = [places[one["parent_id"]] for one in drawn["spans"][1:]]
    assert all(parent < place for place, parent in enumerate(above, 1))
    assert SAYS not in repr(drawn)
    assert PATH not in repr(drawn)


async def test_a_trace_is_shown_while_its_event_goes_on_and_without_a_collector(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    path = f"{world.ws}/events/{lease['event']['event_id']}/trace"
    at = f"/v1/runners/me/leases/{lease['lease_id']}"
    assert (await write(world, token, lease, *entries()[:4])).status_code == 202
    assert (await world.post(f"{at}/renew", {**FIRST}, token)).status_code == 200

    going = (await world.get(path)).json()
    reported = await world.post("/v1/runners/me/reports", report_of(lease, **FIRST), token)
    ended = (await world.get(path)).json()
    elsewhere = await world.get(f"{world.ws}/events/{UUID(int=9)}/trace")

    assert reported.status_code == 200
    assert (going["status"], going["ended"], ended["ended"]) == ("running", False, True)
    assert {"event", "lease", "chat large", "invoke_agent doctor"} <= {one["name"] for one in going["spans"]}
    assert ended["cost_nanos"] == ended["charged_nanos"]
    assert (elsewhere.status_code, elsewhere.json()["error_code"]) == (404, "UZ-EVENT-001")


async def test_a_trace_with_too_many_spans_is_cut_and_its_sum_is_the_bill_all_the_same(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue("2026-11-20", MODELS)
    async with open_http_world_on(postgres_storage, catalogue=catalogue) as world:
        await offer_models(world)
        event_id, _ = await run_twice(world, SENT)
        path = f"{world.ws}/events/{event_id}/trace"
        whole = (await world.get(path)).json()
        monkeypatch.setattr(event_traces, "MOST_SPANS", 4)
        few = (await world.get(path)).json()
        monkeypatch.setattr(event_traces, "MOST_SPANS", 2_000)
        monkeypatch.setattr(event_traces, "MOST_READ_BYTES", 0)
        unread = (await world.get(path)).json()

    traces = (whole, few, unread)

    assert [one["cut"] for one in traces] == [False, True, True]
    assert len(whole["spans"]) > len(few["spans"]) > len(unread["spans"])
    assert len({one["cost_nanos"] for one in traces} | {one["charged_nanos"] for one in traces}) == 1


async def test_what_ends_without_a_run_is_traced_too_and_what_goes_on_is_linked(world: HttpWorld) -> None:
    async with open_collector() as collector, tracing(world, collector.base_url):
        zombie, token, lease = await world.working()
        first = UUID(lease["event"]["event_id"])
        unrecorded = await world.deliver(zombie["webhook_urls"]["github"], traceparent=f"{SENT[:-2]}00")
        waiting = await world.deliver(zombie["webhook_urls"]["github"])
        for gone in (unrecorded, waiting):
            ended = await world.post(f"{world.ws}/events/{gone.json()['event_id']}/cancel")
            assert ended.status_code == 202, ended.text
        report = report_of(lease, checkpoint=NOTE)
        assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200

        following = await world.lease(token)
        assert (await world.post("/v1/runners/me/reports", report_of(following), token)).status_code == 200

        await collector.until(lambda got: got.names()["event"] == 3)
        assert counted(world)["unsampled"] == 1
    events = {span.attributes["sexton.event.id"]: span for span in collector.spans if span.name == "event"}
    cancelled = events[waiting.json()["event_id"]]
    assert cancelled.attributes["sexton.event.status"] == "cancelled"
    assert (cancelled.trace_id, cancelled.parent_id) == (UUID(waiting.json()["event_id"]).hex, "")
    assert [span.name for span in collector.spans if span.trace_id == cancelled.trace_id] == ["wait", "event"]
    assert events[following["event"]["event_id"]].links == ((first.hex, span_id(first, EVENT)),)

    shown = (await world.get(f"{world.ws}/events/{first}")).json()
    assert (shown["trace_id"], shown["links"]["trace"]) == (first.hex, None)


async def hang(stream: trio.SocketStream) -> None:
    await stream.receive_some(1)


async def talk_for_ever(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n")
    while True:
        await stream.send_all(b"x" * 65536)


async def hang_up(stream: trio.SocketStream) -> None:
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")


async def garbage(stream: trio.SocketStream) -> None:
    await stream.send_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


async def redirect(stream: trio.SocketStream) -> None:
    await stream.send_all(
        b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/v1/traces\r\ncontent-length: 0\r\n\r\n"
    )


async def test_a_collector_that_is_away_or_misbehaves_costs_spans_and_nothing_else(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_export, "SEND_S", 0.2)
    monkeypatch.setattr(trace_export, "WAITS_S", (0.01,))
    _, token, lease = await world.working()
    event_id = UUID(lease["event"]["event_id"])
    assert (await world.post("/v1/runners/me/reports", report_of(lease), token)).status_code == 200

    unheard: list[Misbehave] = [hang, hang_up, garbage, redirect]
    async with open_collector() as collector, tracing(world, collector.base_url) as exporter:

        async def export() -> dict[str, int]:
            before = Counter(counted(world))
            exporter.ended(event_id, None, over=True)
            await exporter._idle.wait()
            return dict(Counter(counted(world)) - before)

        assert await export() == {"made": 1, "sent": 1}

        for collector.misbehave in unheard:
            assert await export() == {"made": 1, "lost": 1}, collector.misbehave
        collector.misbehave = talk_for_ever
        assert await export() == {"made": 1, "sent": 1}, "the status has come, and what follows is not read"

        collector.misbehave, collector.status = None, 503
        assert await export() == {"made": 1, "lost": 1}

        before = collector.requests
        assert await export() == {"made": 1, "lost": 1}
        assert collector.requests == before + 1, "while it is away there is one try"

        collector.status, collector.rejects = 200, 1
        assert await export() == {"made": 1, "rejected": 1}

        # While it is silent everybody else goes on, and a bounded number of ends wait.
        collector.misbehave = hang
        monkeypatch.setattr(trace_export, "SEND_S", 60)
        with trio.fail_after(PATIENCE_S):
            exporter.ended(event_id, None, over=True)
            await collector.until(lambda got: got.requests > before + 2)
            for _ in range(MOST_WAITING + 5):
                exporter.ended(event_id, None, over=True)
            assert counted(world)["full"] == 5
            assert len(exporter._ends) == MOST_WAITING

            healthy = await world.get("/readyz", None)
        assert healthy.status_code == 200

        text = (await world.get("/metrics", None)).text
        monkeypatch.setattr(trace_export, "LEAVE_S", 0.05)
    assert 'sexton_trace_ends_total{outcome="full"} 5.0' in text
    assert 'sexton_spans_total{outcome="rejected"} 1.0' in text


async def test_rows_that_cannot_be_read_are_counted_and_the_next_are_traced(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, token, lease = await world.working()
    event_id = UUID(lease["event"]["event_id"])
    assert (await world.post("/v1/runners/me/reports", report_of(lease), token)).status_code == 200

    async with open_collector() as collector, tracing(world, collector.base_url) as exporter:
        world.memory.faults.away = True
        exporter.ended(event_id, 1, over=True)
        await exporter._idle.wait()
        world.memory.faults.away = False
        exporter.ended(UUID(int=1), 1, over=True)
        exporter.ended(event_id, 1, over=True)
        await exporter._idle.wait()
    assert counted(world)["unread"] == 1
    assert collector.names()["lease"] == 1
