"""The pages of agents: the list, and one agent with what it does, costs, remembers and waits for."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from sexton_http.answers import Answer
from sexton_http.bodies.grant_shapes import CredentialGrantPage, GrantPage
from sexton_http.bodies.memories import MemoryList
from sexton_http.bodies.shapes import Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_operation, older_of, show_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.agents import (
    AgentProfile,
    ScorePage,
    ScoreQuery,
    get_agent_profile,
    list_agent_scores,
)
from sexton_http.routes.canaries import CanaryState, get_canary
from sexton_http.routes.console.sample_deliveries import Sample, sample_of
from sexton_http.routes.credential_grants import CredentialGrantQuery, list_credential_grants
from sexton_http.routes.events import EventPage, EventQuery, list_zombie_events
from sexton_http.routes.grants import GrantQuery, list_zombie_grants
from sexton_http.routes.harness import VersionPage, VersionQuery, activate_harness, list_harness_versions
from sexton_http.routes.memories import MemoryQuery, forget_memory, list_memories
from sexton_http.routes.proposals import ProposalPage, ProposalQuery, approve_proposal, list_proposals
from sexton_http.routes.shared.agent_views import ZombiePage, ZombieRecord
from sexton_http.routes.zombies import ZombieQuery, get_zombie, list_zombies
from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.improvement import ProposalStatus
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import ZombieStatus

HERE: Final = "agents"
LATEST: Final = 10
"""Events, versions and memories of an agent that its page shows."""
SCORED: Final = 60
"""Runs whose scores are drawn."""
GRANTS: Final = 50
CANDIDATES: Final = frozenset({ConfigStatus.COMPILED, ConfigStatus.SUPERSEDED})
"""Versions that can be tried out."""


class Allowed(NamedTuple):
    """What the reader may do here."""

    change: bool
    forget: bool
    decide: bool
    needed: str = f"This needs the role {Role.OPERATOR.value}"


class AgentSearch(Query):
    """What the form above the list sends; an empty field chooses nothing."""

    name: Annotated[str, msgspec.Meta(max_length=126)] = ""
    """A part of the name, or a glob."""
    status: Literal["", "active", "paused", "stopped", "killed"] = ""
    cursor: Cursor | None = None


@console_operation(HERE, HERE, "Agents")
async def show_agents(call: Call[NoBody, AgentSearch], frame: Frame) -> Answer:
    """Show the workspace's agents, newest first; those of a name or state, where one is asked for."""
    search = call.query
    status = ZombieStatus(search.status) if search.status else None
    query = ZombieQuery(status=status, name=glob_of(search.name), cursor=search.cursor)
    page: ZombiePage = await act(call, frame.signed_in, list_zombies, query=query)
    return show_page(
        call,
        frame,
        "agents",
        agents=page.items,
        total=page.total,
        search=search,
        states=list(ZombieStatus),
        older=older_of(call, frame, HERE, page.next_cursor),
    )


def glob_of(name: str) -> str | None:
    """Find names that have this in them; what has an asterisk is a glob already.

    >>> glob_of("doc"), glob_of("doc*"), glob_of(" ")
    ('*doc*', 'doc*', None)
    """
    text = name.strip()
    if not text:
        return None
    return text if "*" in text else f"*{text}*"


@console_operation(HERE + "/{zombie_id}", HERE, "Agent")
async def show_agent(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one agent: what it does, costs, remembers and may use, its versions, and the ways to steer it."""
    return await agent_page(call, frame)


async def agent_page(
    call: Call[Any, Any],
    frame: Frame,
    notice: Notice | None = None,
    fresh_urls: Mapping[str, str] | None = None,
) -> Answer:
    """The page of the agent in the path; ``fresh_urls`` are addresses with secrets, shown this once."""
    who, zombie_id = frame.signed_in, call.id("zombie_id")
    agent: ZombieRecord = await act(call, who, get_zombie)
    as_agent = msgspec.structs.replace(call, params={**call.params, "agent_id": zombie_id})
    pending = ProposalQuery(status=ProposalStatus.PENDING, limit=LATEST)
    newest = VersionQuery(agent_id=zombie_id, limit=LATEST)
    of_agent = CredentialGrantQuery(zombie_id=zombie_id)
    memories: Asked[MemoryList] | None = None
    async with side_by_side() as ask:
        profile: Asked[AgentProfile] = ask(act, as_agent, who, get_agent_profile)
        events: Asked[EventPage] = ask(act, call, who, list_zombie_events, query=EventQuery(limit=LATEST))
        versions: Asked[VersionPage] = ask(act, call, who, list_harness_versions, query=newest)
        scores: Asked[ScorePage] = ask(act, as_agent, who, list_agent_scores, query=ScoreQuery(limit=SCORED))
        proposals: Asked[ProposalPage] = ask(act, as_agent, who, list_proposals, query=pending)
        trial: Asked[CanaryState] = ask(act, call, who, get_canary)
        if may(who, list_memories):
            memories = ask(act, call, who, list_memories, query=MemoryQuery(limit=LATEST))
        services: Asked[GrantPage] = ask(act, call, who, list_zombie_grants, query=GrantQuery(limit=GRANTS))
        lent: Asked[CredentialGrantPage] = ask(act, call, who, list_credential_grants, query=of_agent)
    return show_page(
        call,
        frame._replace(title=agent.name),
        "agent",
        notice,
        agent=agent,
        profile=profile.answer,
        events=events.answer.items,
        versions=versions.answer.items,
        more_versions=versions.answer.next_cursor is not None,
        canary=trial.answer.canary,
        candidates=[one for one in versions.answer.items if one.status in CANDIDATES],
        scores=scores.answer.items[::-1],
        proposals=proposals.answer.items,
        memories=None if memories is None else memories.answer,
        services=services.answer.items,
        lent=lent.answer.items,
        samples=samples_of(agent),
        schedules=[trigger for trigger in agent.triggers if trigger.get("type") == "cron"],
        fresh_urls={source: url for source, url in (fresh_urls or {}).items() if not url.endswith("***")},
        allowed=Allowed(may(who, activate_harness), may(who, forget_memory), may(who, approve_proposal)),
    )


def samples_of(agent: ZombieRecord) -> Sequence[Sample]:
    """For each webhook of the agent where it is, and how a delivery is sent there by hand."""
    return [
        sample_of(agent.name, trigger, agent.webhook_urls[trigger["source"]])
        for trigger in agent.triggers
        if trigger.get("source") in agent.webhook_urls
    ]
