"""Reads what a workspace has, as the same flat fields that a folder names."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from sexton_cli.client import Client, Row, field, rows
from sexton_cli.declared.things import OTHER_SECRET, SECRET, Fields, Kind, Things, key_of, kind_of, name_of
from sexton_cli.declared.three_way import Note
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import AGENT, segment, walk

NAMED: Final[Mapping[str, type]] = {"name": str}
SCHEDULE: Final[Mapping[str, type]] = {"zombie_id": str, "schedule": str, "timezone": str, "schedule_id": str}
VERSION: Final[Mapping[str, type]] = {"config_version_id": str, "version": int}
SERVICE: Final[Mapping[str, type]] = {"zombie_id": str, "service": str, "status": str, "grant_id": str}
LENT: Final[Mapping[str, type]] = {"zombie_id": str, "credential": str, "status": str}
APPROVED: Final = "approved"


class Applied(msgspec.Struct, frozen=True):
    """What folders have applied to the workspace."""

    revision: int
    applying: bool
    age_ms: int
    updated_by: str
    items: dict[str, Note]


class OnTrial(msgspec.Struct, frozen=True):
    """A version of an agent that is tried out."""

    version: int
    share: int
    skill: str
    trigger: str


class Live(msgspec.Struct, frozen=True):
    """What there is, and the ids by which it can be changed."""

    things: Things
    agents: Mapping[str, str] = {}
    """The ids of the agents, by name."""
    killed: Collection[str] = ()
    """Agents that are killed: their names are taken until they are deleted."""
    schedules: Mapping[tuple[str, str], str] = {}
    """The ids of schedules, by agent and ``SCHEDULE in TIME ZONE``."""
    grants: Mapping[tuple[str, str], str] = {}
    """The ids of grants, by agent and service."""
    trials: Mapping[str, "OnTrial"] = {}
    """Versions that are on trial, by the agent's name."""


def read_applied(client: Client, workspace: str) -> Applied:
    return msgspec.convert(client.get(f"{workspace}/applied"), Applied)


class LiveReader:
    """Reads a workspace; of its agents those files that are asked for."""

    def __init__(self, client: Client, workspace: str) -> None:
        self._client = client
        self._workspace = workspace

    def read(
        self, agents: Collection[str] | None = None, secrets: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Live:
        """Without ``agents`` all of them whole; ``secrets`` are compared with what the vault holds."""
        rows_of_agents = list(walk(self._client, f"{self._workspace}/zombies", {}, AGENT))
        killed = [row["name"] for row in rows_of_agents if row["status"] == "killed"]
        ids = {row["name"]: row["zombie_id"] for row in rows_of_agents if row["status"] != "killed"}
        found: dict[str, Fields] = {key_of(Kind.WORKSPACE, ""): self._standing()}
        found |= self._credentials(secrets or {}) | self._model_key(secrets or {}) | self._servers()
        schedules, paused = self._schedules(ids)
        grants, granted = self._grants(ids)
        lent = self._lent(ids)
        trials: dict[str, OnTrial] = {}
        for name, zombie_id in ids.items():
            extra = {**paused.get(name, {}), **granted.get(name, {}), **lent.get(name, {})}
            whole = agents is None or name in agents
            record = self._client.get(f"{self._workspace}/zombies/{zombie_id}") if whole else {}
            found[key_of(Kind.AGENT, name)] = {**(self._agent(record) if whole else {}), **extra}
            if trial := record.get("on_trial"):
                trials[name] = self._trial(trial)
        return Live(found, ids, killed, schedules, grants, trials)

    def _standing(self) -> Fields:
        workspace, scoring = self._client.get(self._workspace), self._client.get(f"{self._workspace}/scoring")
        return {
            "paused": workspace.get("paused"),
            "scoring.context_tokens": scoring.get("context_tokens"),
        }

    def _credentials(self, secrets: Mapping[str, Mapping[str, Any]]) -> dict[str, Fields]:
        found: dict[str, Fields] = {}
        for row in walk(self._client, f"{self._workspace}/credentials", {}, NAMED):
            key = key_of(Kind.CREDENTIAL, row["name"])
            fields = {"hosts": row.get("hosts"), "use": row.get("use")}
            data = secrets.get(key)
            found[key] = fields if data is None else {**fields, "data": self._compared(row["name"], data)}
        return found

    def _model_key(self, secrets: Mapping[str, Mapping[str, Any]]) -> dict[str, Fields]:
        kept = self._client.get(f"{self._workspace}/credentials/llm")
        if not kept.get("has_key"):
            return {}
        key = key_of(Kind.MODEL_KEY, "")
        fields: dict[str, Any] = {"provider": kept.get("provider")}
        if (data := secrets.get(key)) is not None:
            fields["api_key"] = self._compared("llm", {**data, "provider": kept.get("provider")})
        return {key: fields}

    def _compared(self, name: str, data: Mapping[str, Any]) -> str:
        path = f"{self._workspace}/credentials/{segment(name)}:compare"
        return SECRET if self._client.post(path, {"data": data}).get("same") else OTHER_SECRET

    def _servers(self) -> dict[str, Fields]:
        return {
            key_of(Kind.MCP_SERVER, row["name"]): _server(row)
            for row in rows(self._client.get(f"{self._workspace}/mcp-servers"), NAMED)
        }

    def _trial(self, trial: Row) -> OnTrial:
        files = self._client.get(f"{self._workspace}/harness/versions/{trial['config_version_id']}")
        texts = field(files, "source_markdown", str), field(files, "trigger_markdown", str)
        return OnTrial(trial["version"], trial["share"], *texts)

    def texts_of(self, record: Row) -> tuple[str, str]:
        """The files that an agent was given last: of a pinned one they may wait. Raises Fault."""
        held, texts = (record.get("pin") or {}).get("held_version"), record
        if held is not None:
            found = version_of(self._client, self._workspace, field(record, "zombie_id", str), held)
            texts = self._client.get(f"{self._workspace}/harness/versions/{found}")
        return field(texts, "source_markdown", str), field(texts, "trigger_markdown", str)

    def _agent(self, record: Row) -> Fields:
        pin = record.get("pin") or {}
        skill, trigger = self.texts_of(record)
        # What the platform has paused only a person lets go on: for a folder it is as it was.
        standing = "stopped" if record.get("status") == "stopped" else "active"
        return {
            "skill": skill,
            "trigger": trigger,
            "status": standing,
            **({"pin": pin["version"]} if pin else {}),
        }

    def _schedules(
        self, ids: Mapping[str, str]
    ) -> tuple[dict[tuple[str, str], str], dict[str, dict[str, Any]]]:
        names = {zombie_id: name for name, zombie_id in ids.items()}
        by_id, paused = dict[tuple[str, str], str](), dict[str, dict[str, Any]]()
        for row in walk(self._client, f"{self._workspace}/schedules", {}, SCHEDULE):
            name = names.get(row["zombie_id"], "")
            what = f"{row['schedule']} in {row['timezone']}"
            by_id[name, what] = row["schedule_id"]
            if row.get("paused_at") is not None:
                paused.setdefault(name, {})[f"paused_schedules.{what}"] = True
        return by_id, paused

    def _grants(self, ids: Mapping[str, str]) -> tuple[dict[tuple[str, str], str], dict[str, dict[str, Any]]]:
        names = {zombie_id: name for name, zombie_id in ids.items()}
        by_id, granted = dict[tuple[str, str], str](), dict[str, dict[str, Any]]()
        for row in walk(self._client, f"{self._workspace}/integration-grants", {"status": APPROVED}, SERVICE):
            name = names.get(row["zombie_id"], "")
            by_id[name, row["service"]] = row["grant_id"]
            granted.setdefault(name, {})[f"grants.{row['service']}"] = True
        return by_id, granted

    def _lent(self, ids: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        names = {zombie_id: name for name, zombie_id in ids.items()}
        lent = dict[str, dict[str, Any]]()
        for row in walk(self._client, f"{self._workspace}/credential-grants", {"status": APPROVED}, LENT):
            name = names.get(row["zombie_id"], "")
            lent.setdefault(name, {})[f"credential_grants.{row['credential']}"] = True
        return lent


def version_of(client: Client, workspace: str, zombie_id: str, number: int) -> str:
    """The id of an agent's version of this number. Raises Fault."""
    for row in walk(client, f"{workspace}/harness/versions", {"agent_id": zombie_id}, VERSION):
        if row["version"] == number:
            found: str = row["config_version_id"]
            return found
    way_out = "'sexton agent versions NAME' lists them."
    raise Fault(f"the agent has no version {number}", way_out, status=FAILED)


def _server(row: Row) -> Fields:
    fields: dict[str, Any] = {"tools": row.get("tools") or []}
    for key in ("url", "command"):
        if row.get(key):
            fields[key] = row[key]
    for part in ("headers", "env"):
        fields.update({f"{part}.{name}": value for name, value in (row.get(part) or {}).items()})
    return fields


def wanted_agents(want: Things, notes: Mapping[str, Note]) -> set[str]:
    """The agents whose files are looked at."""
    return {name_of(key) for key in (*want, *notes) if kind_of(key) is Kind.AGENT}
