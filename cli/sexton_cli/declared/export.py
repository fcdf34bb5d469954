"""Writes a workspace as the folder that would make it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from sexton_cli.declared.declaration_file import FILE, SECRET_SHAPE, literal_secret
from sexton_cli.declared.disk import agent_files
from sexton_cli.declared.forms import FORMAT
from sexton_cli.declared.live import Live
from sexton_cli.declared.things import DEFAULTS, TEXTS, Fields, Kind, key_of, kind_of, name_of
from sexton_cli.exits import FAILED, Fault

HEAD: Final = """\
# One workspace, as it was exported: 'sexton apply -f DIR' keeps a server as this folder says.
# A credential without `data` is in the vault already. To keep it from here, say where it comes from:
#   data: {token: {env: VARIABLE}}    or    object: {file: /run/secrets/NAME.json}
"""


class _Dumper(yaml.SafeDumper):
    """What ``apply`` reads has no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def declaration_of(live: Live, *, folder: str, workspace: str, from_environment: bool) -> dict[str, Any]:
    """What stands in ``sexton.yaml``: everything that is not as it is by itself."""
    found: dict[str, Any] = {"format": FORMAT, "folder": folder, "workspace": workspace}
    standing = live.things.get(key_of(Kind.WORKSPACE, ""), {})
    by_itself = DEFAULTS[Kind.WORKSPACE]
    if standing.get("paused"):
        found["paused"] = True
    if standing.get("scoring.context_tokens") != by_itself["scoring.context_tokens"]:
        found["scoring"] = {"context_tokens": standing["scoring.context_tokens"]}
    parts: dict[str, dict[str, Any]] = {"credentials": {}, "mcp_servers": {}, "agents": {}}
    for key in sorted(live.things):
        fields, name = live.things[key], name_of(key)
        match kind_of(key):
            case Kind.CREDENTIAL:
                parts["credentials"][name] = _credential(name, fields, from_environment=from_environment)
            case Kind.MODEL_KEY:
                source = {"api_key": {"env": "MODEL_API_KEY"}} if from_environment else {}
                found["model_key"] = {"provider": fields["provider"], **source}
            case Kind.MCP_SERVER:
                parts["mcp_servers"][name] = _nested(fields)
            case Kind.AGENT:
                if settings := _settings(fields):
                    parts["agents"][name] = settings
            case Kind.WORKSPACE:
                pass
    return found | {part: value for part, value in parts.items() if value}


def _credential(name: str, fields: Fields, *, from_environment: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if from_environment:
        found["object"] = {"env": f"CREDENTIAL_{name.upper().replace('-', '_')}"}
    if fields.get("hosts"):
        found["hosts"] = fields["hosts"]
    if fields.get("use") != DEFAULTS[Kind.CREDENTIAL]["use"]:
        found["use"] = fields["use"]
    return found


def _nested(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in fields.items():
        part, dot, name = field.partition(".")
        if dot:
            found.setdefault(part, {})[name] = value
        elif value != DEFAULTS[Kind.MCP_SERVER].get(field):
            found[field] = value
    return found


def _settings(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if fields.get("status") == "stopped":
        found["status"] = "stopped"
    if fields.get("pin") is not None:
        found["pin"] = fields["pin"]
    for field in sorted(fields):
        part, _, what = field.partition(".")
        if part == "paused_schedules":
            schedule, _, timezone = what.rpartition(" in ")
            found.setdefault(part, []).append({"schedule": schedule, "timezone": timezone})
        elif part == "grants":
            found.setdefault(part, []).append(what)
    # Whom an operator's files may be lent what they name is said by applying them.
    return found


def check_secrets(live: Live) -> list[str]:
    """The files that hold what looks like a secret. Raises Fault for one in a declaration."""
    for key, fields in live.things.items():
        for field, value in fields.items():
            part, dot, name = field.partition(".")
            if dot and part in {"headers", "env"} and literal_secret(name, value):
                what = f"the MCP server {name_of(key)} has what looks like a secret in {field}"
                way_out = "Keep it as a credential, and write ${secrets.NAME.FIELD} in its place."
                raise Fault(what, way_out, status=FAILED)
    return [
        f"{TEXTS[field]} of {name_of(key)}"
        for key, fields in sorted(live.things.items())
        for field in TEXTS
        if SECRET_SHAPE.search(fields.get(field) or "")
    ]


def write_folder(target: Path, declaration: Mapping[str, Any], live: Live) -> list[str]:
    """Write the files, over nothing that is there; their names. Raises Fault."""
    text = yaml.dump(declaration, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    files = {target / FILE: HEAD + text}
    for name in sorted(live.agents):
        fields = live.things[key_of(Kind.AGENT, name)]
        for field, path in zip(TEXTS, agent_files(target, name), strict=True):
            files[path] = fields[field]
    taken = [str(path) for path in files if path.exists()]
    if taken:
        way_out = "Export to a new folder, or take the files away."
        raise Fault(f"{taken[0]} is there already; nothing was written", way_out, status=FAILED)
    try:
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="") as file:
                file.write(content)
    except OSError as fault:
        raise Fault(f"{fault.filename or target}: {fault.strerror}", status=FAILED) from fault
    return [str(path.relative_to(target)) for path in files]
