"""The language that picks events: how it is read, and that SQL and the predicate read it alike."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, example, given, settings, strategies as st

from sexton_storage.event_filter.parse import FilterError, parse_filter
from sexton_storage.event_filter.predicate import Subject, picks
from sexton_storage.event_filter.words import distinct_words, phrase_of, words_of
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.postgres.sql.event_words import words_query
from sexton_storage.records.event_filters import EVERY, MAX_CHARS, MAX_TERMS, EventFilter
from sexton_storage.records.event_words import NOTHING
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.writes import AppendEvent, EventEnd
from tests.worlds.storage import StorageWorld

NOW = 1_732_060_800_000
FAULTS = [
    ("status:", 7, "a value is missing"),
    ("status:done", 7, "no status 'done'"),
    ("colour:red", 0, "no field 'colour'"),
    ('type:push "never closed', 10, "not closed"),
    ("type:push,,pull", 10, "a value is missing"),
    ("request:x", 0, "needs a path"),
    ("actor.name:x", 5, "has no path"),
    ("actor>3", 5, "takes a colon"),
    ("request.n>three", 10, "compares numbers"),
    ("request.n>1,2", 12, "one value"),
    ("after:soon", 6, "a duration"),
    ("after:1h,2h", 9, "one value"),
    ("runner:deploy", 7, "UUID"),
    ("id:{00000000-0000-0000-0000-000000000000}", 3, "UUID"),
    ("text:!!!", 5, "no word"),
    ("-", 1, "a value is missing"),
    ('"a""b"', 3, "apart by a space"),
    ("a\x00b", 1, "control"),
    ("a\ud800", 1, "control"),
    ("x " * (MAX_TERMS + 1), 2 * (MAX_TERMS + 1), "terms"),
    ("x" * (MAX_CHARS + 1), MAX_CHARS, "characters"),
    ("text:" + "a.b." * 20, 5, "words"),
    ("request.a.b.c.d.e.f.g.h.i:1", 7, "names"),
    ("type:" + "a," * 40 + "a", 69, "values"),
]


@pytest.mark.parametrize(("text", "position", "says"), FAULTS)
def test_a_filter_that_cannot_be_read_says_where_and_why(text: str, position: int, says: str) -> None:
    with pytest.raises(FilterError, match=says) as caught:
        parse_filter(text, now=NOW)

    assert caught.value.position == position


def test_what_is_quoted_may_hold_anything() -> None:
    [term] = parse_filter(r'actor:"cron:*/5 * * * *","say \"hi\", C:\\x"', now=NOW).terms
    [path] = parse_filter(r'request."a.b"."c\"d".0:1', now=NOW).terms

    assert term.values == ("cron:*/5 * * * *", 'say "hi", C:\\x')
    assert path.path == ("a.b", 'c"d', "0")


@settings(max_examples=300, deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(['"', "\\", ":", ",", "-", "text", "request.a", ">", " ", "2h", "*"])).map(
        "".join
    )
)
def test_whatever_is_written_is_a_filter_or_a_fault_in_it(text: str) -> None:
    try:
        found = parse_filter(text, now=NOW)
        position = 0
    except FilterError as fault:
        found, position = EVERY, fault.position

    assert 0 <= position <= len(text)
    assert len(found.terms) <= MAX_TERMS


# --- both readings ------------------------------------------------------------------------------------------

DOCUMENTS = [
    '{"n": 1, "pull": {"number": 17, "labels": ["bug", 3, true, null, {"x": 1}]}, "say": "refused"}',
    '{"n": [1], "say": "Connection refused"}',
    '{"n": 1.0, "pull": {"number": -17.50}, "say": "connection  REFUSED by host", "n2": 1e3, "on": false}',
    '{"say": "a\\u0000b", "n": 1, "pull": {"number": 17}}',
    '{"say": "half \\ud800", "n": 1}',
    '{"say": "\\ud83d\\ude00 caf\\u00e9", "n": 9999999999999999999999, "n2": 1e9999}',
    '{"say": "line\\nnext\\tover C:\\\\new", "n": "1", "": {"": "empty"}}',
    '[{"n": 1}, {"n": 2}, ["refused"]]',
    '"refused"',
    "17",
    "null",
    '{"say": "100%_sure \\"quoted\\" ünï_cödé 東京 word", "n": null, "n": 2}',
    '{"deep": ' + "[" * 40 + '"refused"' + "]" * 40 + "}",
    '{"say": "' + "word " * 20_000 + 'beyond"}',
    '{"many": [' + "0," * 255 + '1, 2, "late"]}',
]
EVIDENCE = [None, {"exit_code": 0, "say": "refused"}, {"exit_code": 137, "lines": ["a\x00b"]}, {"": [1.5]}]
ACTORS = ["webhook:github", "steer:ann_x", "cron:*/5 * * * *", "webhook:", "system", "webhook:git%hub"]
TYPES = ["push", "pull_request.opened", "a\\b", "100%", ""]
ENDS = [EventStatus.PROCESSED, EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED]
SPELLED = (
    "1 17 -17.5 1.0 2 1000 0 137 true false null bug b* * ** late refused conn* new next word bey* no_ma*"
    " café 東京 100%_sure quoted ünï_cödé n line u0000 a\\b % _ empty github git* webhook:* webhook:github"
    " steer:ann_x steer:ann?x cron cron:* system push pull_* agent-1 agent-* gpu g* eu UZ-* UZ-EXEC-013"
    " agent_run"
)
VALUES = [*SPELLED.split(" "), "connection refused", "refused by", ""]
PATHS_SPELLED = (
    'n n2 on say pull.number pull.labels pull.labels.0 pull.labels.-1 pull.labels.5.x 0.n 1 2.0 -1 ""'
    ' ""."" many many.256 deep.0.0 exit_code lines nothing'
)
PATHS = PATHS_SPELLED.split(" ")


def quoted(values: list[str]) -> st.SearchStrategy[str]:
    spelled = st.sampled_from(values).map(lambda value: '"' + value.replace("\\", "\\\\") + '"')
    return st.lists(spelled, min_size=1, max_size=3).map(",".join)


TERMS = st.one_of(
    quoted([value for value in VALUES if phrase_of(value)]).map("text:{}".format),
    st.builds(
        "{}:{}".format,
        st.sampled_from(["agent", "actor", "source", "type", "code", "failure", "label"]),
        quoted(VALUES),
    ),
    st.builds(
        "{}.{}:{}".format,
        st.sampled_from(["request", "evidence"]),
        st.sampled_from(PATHS),
        quoted(VALUES),
    ),
    st.builds(
        "{}.{}{}{}".format,
        st.sampled_from(["request", "evidence"]),
        st.sampled_from(PATHS),
        st.sampled_from(["<", "<=", ">", ">="]),
        st.sampled_from(["1", "0", "-17.5", "17", "136.5", "999"]),
    ),
    st.builds("status:{}".format, st.lists(st.sampled_from(list(EventStatus)), min_size=1).map(",".join)),
    st.builds("{}:{}".format, st.sampled_from(["after", "before"]), st.integers(NOW - 20, NOW + 20)),
)
FILTERS = st.lists(
    st.builds("{}{}".format, st.sampled_from(["", "", "-"]), TERMS), min_size=1, max_size=3
).map(" ".join)


async def _plant(world: StorageWorld) -> None:
    """Events of all kinds: some wait, some have ended in each way."""
    agents = [
        await world.agent(name="agent-1", required_tags=("gpu", "memory>=512MiB")),
        await world.agent(name="other", required_tags=()),
    ]
    for i, document in enumerate(DOCUMENTS * 2):
        await world.append(
            agents[i % 2],
            request_json=document,
            actor=ACTORS[i % len(ACTORS)],
            event_type=TYPES[i % len(TYPES)],
            created_at=NOW - 14 + i,
        )
    for i in range(18):
        status = ENDS[i % len(ENDS)]
        label = None if status is EventStatus.PROCESSED else "agent_run"
        end = EventEnd(
            status,
            response_text=[None, "Connection refused", "ok\nconnection"][i % 3],
            evidence=EVIDENCE[i % len(EVIDENCE)],
            failure_label=label,
            error_code=label and "UZ-EXEC-013",
        )
        await world.end((await world.claim(agents[i % 2])).lease, end)
    await world.claim(agents[0])


async def _subjects(world: StorageWorld) -> list[Subject]:
    await _plant(world)
    found = []
    for listed in await world.storage.events.list(world.workspace_id, limit=200):
        event = await world.storage.events.load(listed.id)
        agent = None if event is None else await world.storage.zombies.load(event.zombie_id)
        assert event is not None
        assert agent is not None
        history = await world.storage.insights.history(event.id)
        runners = frozenset(one.lease.runner_id for one in history.attempts)
        found.append(Subject(event, agent.name, agent.required_tags, runners))
    return found


async def _late(world: StorageWorld) -> Subject:
    agent = await world.agent(name="late", required_tags=())
    event = world.event_of(agent, request_json=DOCUMENTS[0], event_type="push", created_at=NOW)
    frame = msgspec.structs.replace(world.frame(agent, FrameKind.EVENT_RECEIVED), event_id=event.id)
    await world.storage.journal.write(AppendEvent(event, None, None, None, (frame,)))
    return Subject(event, agent.name, (), frozenset())


async def test_the_database_and_the_predicate_pick_the_same_events(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        subjects = await _subjects(world)
        ids = [one.event.id for one in subjects]
        reached = {"picked": 0, "left": 0, "by words": 0}

        # The index has what there was before its first rounds; one event comes behind its place.
        while (await storage.event_words.index(limit=7)).more:
            pass
        assert await storage.event_words.index(limit=7) == NOTHING

        subjects.append(await _late(world))
        ids.append(subjects[-1].event.id)

        async def searched_ids(found: EventFilter) -> frozenset[UUID]:
            page = await storage.events.search(world.workspace_id, found, limit=200)
            assert page.stopped_at is None
            return frozenset(one.id for one in page.events)

        @settings(
            max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
        )
        @given(FILTERS)
        @example('text:"connection refused"')
        @example("request.n:1")
        @example("request.n:null")
        @example("-evidence.exit_code:null")
        @example("-request.n:1 -text:word")
        @example(f"runner:{next(r for one in subjects for r in one.runner_ids)}")
        @example(f"id:{ids[0]},{ids[-1]} agent:{subjects[0].event.zombie_id}")
        def hold(text: str) -> None:
            found = parse_filter(text, now=NOW)
            by_sql: Any = trio.from_thread.run(storage.events.picked_among, ids, found)
            by_hand = frozenset(one.event.id for one in subjects if picks(found, one))

            assert by_sql == by_hand, text
            searched: Any = trio.from_thread.run(searched_ids, found)
            assert searched == by_hand, text
            reached["by words"] += words_query(world.workspace_id, found) is not None
            reached["picked"] += bool(by_hand)
            reached["left"] += len(by_hand) < len(ids)

        await trio.to_thread.run_sync(hold)

        assert min(reached.values()) > 20, reached


@given(st.text() | st.sampled_from(DOCUMENTS))
def test_the_words_that_are_indexed_are_those_that_are_searched(text: str) -> None:
    told = {word.decode("utf-8", "surrogatepass") for word in distinct_words(text)}
    assert told == set(words_of(text).split(" ")) - {""}


def test_the_documents_that_are_planted_are_json() -> None:
    for document in DOCUMENTS:
        json.loads(document)
