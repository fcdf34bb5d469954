"""Reads a folder: what it wants of one workspace, and the secrets that go with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from sexton_actors.manifest.parse import Reading, read
from sexton_actors.manifest.problems import Problem, Problems
from sexton_actors.secret_uses import kept, told
from sexton_cli.declared.declaration_file import FILE, MAX_BYTES, SECRET_SHAPE, parse
from sexton_cli.declared.disk import Wrong, agent_files, agent_folders, read_text
from sexton_cli.declared.forms import UNSET, Agent, Declaration, McpServer
from sexton_cli.declared.secret_sources import SecretSources
from sexton_cli.declared.things import SECRET, TEXTS, Fields, Kind, key_of
from sexton_cli.manifests import MAX_READ_BYTES
from sexton_cli.runner_environment import surroundings

MAX_FOLDERS: Final = 256
"""Workspaces that are looked at below one folder."""


class Folder(msgspec.Struct, frozen=True):
    """What one ``sexton.yaml`` and the files beside it want."""

    path: Path
    name: str
    workspace: str | None
    """None: the one in use."""
    things: Mapping[str, Fields]
    secrets: Mapping[str, Mapping[str, Any]]
    """The data of credentials, by key; of the model key as well."""


class Unreadable(Exception):
    """What is wrong, with its places."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems


def find_folders(root: Path) -> list[Path]:
    """The folder itself, or each below it that has a ``sexton.yaml``. Raises Unreadable."""
    if (root / FILE).exists() or (root / FILE).is_symlink():
        return [root]
    try:
        found = [path for path in sorted(root.iterdir()) if path.is_dir() and (path / FILE).exists()]
    except OSError as fault:
        raise Unreadable([Problem(str(root), 1, "", fault.strerror or "cannot be read", "")]) from fault
    if not 0 < len(found) <= MAX_FOLDERS:
        why = (
            f"neither has {FILE} nor folders with one"
            if not found
            else f"has more than {MAX_FOLDERS} workspaces"
        )
        raise Unreadable([Problem(str(root), 1, "", why, "")])
    return found


def read_folder(root: Path, path: Path, environ: Mapping[str, str]) -> Folder:
    """Everything that one folder wants. Raises Unreadable with all that is wrong."""
    shown = str(path / FILE)
    problems = Problems(shown)
    try:
        text = read_text(root, path / FILE, MAX_BYTES)
    except Wrong as wrong:
        raise Unreadable([Problem(shown, 1, "", str(wrong), "")]) from None
    if (leak := SECRET_SHAPE.search(text)) is not None:
        problems.add(
            text.count("\n", 0, leak.start()) + 1,
            "",
            "a secret stands here as it is; name where it comes from",
        )
    parsed = parse(text, shown)
    found = [*problems.found, *parsed.problems]
    agents, wrong_agents = _agents(root, path, parsed.declaration, environ)
    found += wrong_agents
    if parsed.declaration is None:
        raise Unreadable(found)
    sources = Problems(shown)
    things, secrets = _declared(parsed.declaration, SecretSources(path, environ, parsed.lines, sources))
    found += sources.found
    if found:
        raise Unreadable(found)
    form = parsed.declaration
    workspace = None if form.workspace is UNSET else form.workspace
    return Folder(path, form.folder, workspace, {**things, **agents}, secrets)


def _declared(
    form: Declaration, sources: SecretSources
) -> tuple[dict[str, Fields], dict[str, Mapping[str, Any]]]:
    things: dict[str, Fields] = {}
    secrets: dict[str, Mapping[str, Any]] = {}
    standing: dict[str, Any] = {}
    if form.paused is not UNSET:
        standing["paused"] = form.paused
    if form.scoring is not UNSET:
        standing["scoring.context_tokens"] = form.scoring.context_tokens
    if standing:
        things[key_of(Kind.WORKSPACE, "")] = standing
    for name, one in form.credentials.items():
        key, fields = key_of(Kind.CREDENTIAL, name), dict[str, Any]()
        if (data := sources.credential(one, f"credentials.{name}")) is not None:
            secrets[key] = data
            fields["data"] = SECRET
        if one.hosts is not UNSET:
            fields["hosts"] = one.hosts
        if one.use is not UNSET:
            fields["use"] = list(msgspec.to_builtins(told(kept(one.use))))
        things[key] = fields
    if form.model_key is not UNSET:
        key = key_of(Kind.MODEL_KEY, "")
        things[key] = {"provider": form.model_key.provider}
        if form.model_key.api_key is not UNSET:
            text = sources.text(form.model_key.api_key, "model_key.api_key")
            things[key] = {**things[key], "api_key": SECRET}
            secrets[key] = {"provider": form.model_key.provider, "api_key": text}
    for name, server in form.mcp_servers.items():
        things[key_of(Kind.MCP_SERVER, name)] = _server(server)
    return things, secrets


def _server(form: McpServer) -> Fields:
    fields: dict[str, Any] = {}
    for field in ("url", "command"):
        if (value := getattr(form, field)) is not UNSET:
            fields[field] = value
    if form.tools is not UNSET:
        fields["tools"] = list(dict.fromkeys(form.tools))
    for part in ("headers", "env"):
        values: dict[str, str] = getattr(form, part) or {}
        fields.update({f"{part}.{name}": value for name, value in values.items()})
    return fields


def _agents(
    root: Path, path: Path, form: Declaration | None, environ: Mapping[str, str]
) -> tuple[dict[str, Fields], list[Problem]]:
    things: dict[str, Fields] = {}
    problems = Problems(str(path))
    names = agent_folders(root, path, problems)
    found = list(problems.found)
    for name in names:
        texts = {}
        for field, file in zip(TEXTS, agent_files(path, name), strict=True):
            try:
                texts[field] = read_text(root, file, MAX_READ_BYTES)
            except Wrong as wrong:
                found.append(Problem(str(file), 1, "", str(wrong), ""))
        if len(texts) < len(TEXTS):
            continue
        reading = read(texts["skill"], texts["trigger"], surroundings(environ))
        settings = form.agents.get(name, Agent()) if form is not None else Agent()
        if isinstance(reading, Reading):
            found += _misplaced(path, name, reading, settings)
            things[key_of(Kind.AGENT, name)] = {**texts, **_settings(settings)}
        else:
            place = path / "agents" / name
            found += [msgspec.structs.replace(one, file=str(place / one.file)) for one in reading.errors]
    missing = [] if form is None else [name for name in form.agents if name not in names]
    found += [
        Problem(str(path / FILE), 1, f"agents.{name}", f"there is no folder agents/{name}", "")
        for name in missing
    ]
    return things, found


def _misplaced(path: Path, name: str, reading: Reading, settings: Agent) -> list[Problem]:
    """What both files and settings are good for, each by itself, and not together."""
    skill, _ = agent_files(path, name)
    found = []
    if reading.manifest.name != name:
        why = f"the agent `{reading.manifest.name}` stands in agents/{name}; give both one name"
        found.append(Problem(str(skill), 1, "name", why, ""))
    has = {(one.schedule, one.timezone) for one in reading.manifest.cron_triggers}
    for one in settings.paused_schedules or ():
        if (one.schedule, one.timezone) not in has:
            why = f"TRIGGER.md has no schedule `{one.schedule}` in {one.timezone}"
            found.append(Problem(str(path / FILE), 1, f"agents.{name}.paused_schedules", why, ""))
    for service in settings.grants or ():
        if service not in reading.manifest.integrations:
            why = f"TRIGGER.md does not name `{service}` among its `integrations`"
            found.append(Problem(str(path / FILE), 1, f"agents.{name}.grants", why, ""))
    return found


def _settings(form: Agent) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if form.status is not UNSET:
        fields["status"] = form.status.value
    if form.pin is not UNSET:
        fields["pin"] = form.pin
    for one in form.paused_schedules or ():
        fields[f"paused_schedules.{one.schedule} in {one.timezone}"] = True
    for part in ("grants", "credential_grants"):
        for name in getattr(form, part) or ():
            fields[f"{part}.{name}"] = True
    return fields
