"""Makes one change after the other on a server; each may be made once more."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sexton_cli.client import Client, Row, field
from sexton_cli.declared.folder import Folder
from sexton_cli.declared.live import Live, LiveReader, version_of
from sexton_cli.declared.things import TEXTS, Kind, name_of
from sexton_cli.declared.three_way import Change, Verb
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import segment

PIN: Final = "pin"
REASON: Final = "Named by the folder {folder}."


class Made(msgspec.Struct, frozen=True):
    """An agent's secrets, which the server shows once."""

    agent: str
    approval_token: str | None
    webhook_urls: Mapping[str, str]


class Steps:
    """Writes to one workspace."""

    def __init__(
        self, client: Client, workspace: str, folder: Folder, live: Live, *, seed: uuid.UUID
    ) -> None:
        """From ``seed`` come the keys under which the same step, once more, is one with the first."""
        self._client = client
        self._workspace = workspace
        self._folder = folder
        self._live = live
        self._seed = seed
        self._ids = dict(live.agents)
        self.made: list[Made] = []

    def take(self, change: Change) -> None:
        """Make one change. Raises Fault."""
        handlers: Mapping[Kind, Callable[[Change], None]] = {
            Kind.WORKSPACE: self._standing,
            Kind.CREDENTIAL: self._credential,
            Kind.MODEL_KEY: self._model_key,
            Kind.MCP_SERVER: self._server,
            Kind.AGENT: self._agent,
        }
        handlers[change.kind](change)

    def _standing(self, change: Change) -> None:
        for one in change.fields:
            if one.field == "paused":
                self._client.patch(self._workspace, {"paused": one.after})
            else:
                self._client.put(f"{self._workspace}/scoring", {"context_tokens": one.after})

    def _credential(self, change: Change) -> None:
        name = name_of(change.key)
        if change.verb is Verb.REMOVE:
            self._client.delete(f"{self._workspace}/credentials/{segment(name)}")
            return
        fields = self._merged(change)
        body = {"name": name, "data": self._folder.secrets[change.key], "hosts": fields.get("hosts") or []}
        body |= {"use": fields["use"]} if fields.get("use") else {}
        self._client.post(f"{self._workspace}/credentials", body, key=self._key(change.key))

    def _model_key(self, change: Change) -> None:
        path = f"{self._workspace}/credentials/llm"
        if change.verb is Verb.REMOVE:
            self._client.delete(path)
        else:
            self._client.put(path, self._folder.secrets[change.key])

    def _server(self, change: Change) -> None:
        path = f"{self._workspace}/mcp-servers/{segment(name_of(change.key))}"
        if change.verb is Verb.REMOVE:
            self._client.delete(path)
            return
        fields = self._merged(change)
        body: dict[str, Any] = {key: fields[key] for key in ("url", "command", "tools") if fields.get(key)}
        for part in ("headers", "env"):
            given = {k.partition(".")[2]: v for k, v in fields.items() if k.startswith(f"{part}.")}
            body |= {part: given} if given else {}
        self._client.put(path, body)

    def _agent(self, change: Change) -> None:
        name = name_of(change.key)
        if change.verb is Verb.REMOVE:
            self._client.delete(self._path(name))
            return
        if change.verb is Verb.MAKE:
            self._install(name)
        elif any(one.field in {*TEXTS, PIN} for one in change.fields):
            before = self._still_as_seen(change.key, name)
            for one in change.fields:
                if one.field == PIN:
                    self._pin(name, one.after)
            fields = self._folder.things[change.key]
            texts = {"source_markdown": fields["skill"], "trigger_markdown": fields["trigger"]}
            self._note(name, self._client.patch(self._path(name), texts), before)
        self._set(change, name)

    def _still_as_seen(self, key: str, name: str) -> Row:
        """What was shown as a difference is what is replaced; what is there now. Raises Fault."""
        now, seen = self._client.get(self._path(name)), self._live.things[key]
        texts = LiveReader(self._client, self._workspace).texts_of(now)
        if texts != (seen["skill"], seen["trigger"]):
            what = f"somebody has changed the agent {name} at this moment"
            raise Fault(what, "Look with --diff, and apply again.", status=FAILED)
        return now

    def _install(self, name: str) -> None:
        if name in self._live.killed:
            way_out = f"Delete it with 'sexton agent delete {name}', and apply again."
            raise Fault(f"the agent {name} is killed, and still has the name", way_out, status=FAILED)
        fields = self._folder.things[f"agent/{name}"]
        body = {"source_markdown": fields["skill"], "trigger_markdown": fields["trigger"]}
        made = self._client.post(f"{self._workspace}/zombies", body, key=self._key(name))
        self._ids[name] = field(made, "zombie_id", str)
        self._note(name, made, {})

    def _set(self, change: Change, name: str) -> None:
        """Everything of an agent beside its files."""
        for one in change.fields:
            part, _, what = one.field.partition(".")
            match part:
                case "pin" if change.verb is Verb.MAKE:
                    self._pin(name, one.after)
                case "status" if change.verb is Verb.CHANGE or one.after != "active":
                    self._client.patch(self._path(name), {"status": one.after})
                case "grants":
                    self._grant(name, what, wanted=bool(one.after))
                case "credential_grants":
                    self._lend(name, what, wanted=bool(one.after))
                case "paused_schedules":
                    self._pause(name, what, wanted=bool(one.after))
                case _:
                    pass

    def _pin(self, name: str, number: int | None) -> None:
        """Have it stay at a version, or let it go; its files are written after that, and wait or count."""
        path = f"{self._path(name)}/pin"
        if (self._client.get(self._path(name)).get("pin") or {}).get("version") != number:
            self._client.delete(path)
        if number is None:
            return
        version_id = version_of(self._client, self._workspace, self._ids[name], number)
        self._client.post(f"{self._workspace}/harness/activate", {"config_version_id": version_id})
        self._client.put(path, {"agent_version": number, "reason": REASON.format(folder=self._folder.name)})

    def _grant(self, name: str, service: str, *, wanted: bool) -> None:
        if not wanted:
            self._client.delete(f"{self._path(name)}/integration-grants/{self._live.grants[name, service]}")
            return
        body = {"service": service, "reason": REASON.format(folder=self._folder.name)}
        asked = self._client.post(
            f"{self._path(name)}/integration-requests", body, key=self._key(f"{name} {service}")
        )
        if asked.get("status") != "approved":
            path = f"{self._path(name)}/integration-grants/{field(asked, 'grant_id', str)}"
            self._client.patch(path, {"status": "approved"})

    def _lend(self, name: str, credential: str, *, wanted: bool) -> None:
        path = f"{self._path(name)}/credential-grants/{segment(credential)}"
        if wanted:
            self._client.patch(path, {"status": "approved"})
        else:
            self._client.delete(path)

    def _pause(self, name: str, what: str, *, wanted: bool) -> None:
        # The id comes of the agent and its files, which may have changed in this very step.
        query = f"{self._workspace}/schedules?zombie_id={self._ids[name]}"
        items: list[Row] = field(self._client.get(query), "items", list)
        for row in items:
            if f"{row.get('schedule')} in {row.get('timezone')}" == what:
                verb = "pause" if wanted else "resume"
                self._client.post(f"{self._path(name)}/schedules/{row.get('schedule_id')}:{verb}", {})

    def _key(self, of_step: str) -> str:
        return str(uuid.uuid5(self._seed, of_step))

    def _path(self, name: str) -> str:
        return f"{self._workspace}/zombies/{self._ids[name]}"

    def _merged(self, change: Change) -> dict[str, Any]:
        """What is there, with what has to change: these are written whole."""
        fields = dict(self._live.things.get(change.key, {}))
        for one in change.fields:
            fields[one.field] = one.after
        return {name: value for name, value in fields.items() if value is not None}

    def _note(self, name: str, answer: Row, before: Row) -> None:
        """Keep what is shown this once. An address that could be read before, too, is none of it."""
        known, given = before.get("webhook_urls") or {}, answer.get("webhook_urls") or {}
        urls = {source: url for source, url in given.items() if known.get(source) != url}
        token = answer.get("approval_token")
        if token or urls:
            self.made.append(Made(name, token, urls))
