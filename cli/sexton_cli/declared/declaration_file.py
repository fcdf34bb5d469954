"""Reads ``sexton.yaml``, and says by line what is wrong with it."""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.free_form import free_json
from sexton_actors.manifest.nodes import Node, NotYaml, Sequence, Table, read_yaml
from sexton_actors.manifest.problems import Problem, Problems
from sexton_cli.declared.forms import Agent, Credential, Declaration, McpServer, SecretSource

FILE: Final = "sexton.yaml"
MAX_VALUES: Final = 20_000
MAX_BYTES: Final = 512 * 1024
REFERENCE: Final = "a secret never stands in the folder: write `{env: VARIABLE}` or `{file: PATH}`"
PLACE: Final = "a secret belongs in a credential: write `${secrets.NAME.FIELD}` in its place"
SECRET_NAME: Final = re.compile(r"authorization|cookie|token|secret|password|api[-_]?key", re.IGNORECASE)
SECRET_SHAPE: Final = re.compile(
    r"sk-ant-[\w-]{16,}|gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{22,}|xox[abeprs]-[\w-]{10,}"
    r"|AKIA[0-9A-Z]{16}|zmb_[a-z]+_[0-9a-f]{32,}|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_PATH: Final = re.compile(r"(?P<what>.*?)(?: - at `(?P<key>key in )?\$?(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile("Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[([0-9]+|\.\.\.)\]")
F = TypeVar("F", bound=msgspec.Struct)


class Parsed(msgspec.Struct, frozen=True):
    declaration: Declaration | None
    """None where there are problems."""
    problems: tuple[Problem, ...]
    lines: Mapping[str, int]
    """By path, as ``credentials.hub``: where it stands."""


def parse(text: str, file: str = FILE) -> Parsed:
    r"""Read the text of one file.

    >>> parse("format: 1\nfolder: crew\npasued: true\n").problems[0].message
    'unknown key; did you mean `paused`?'
    """
    problems = Problems(file)
    node = read_yaml(text.removeprefix("\ufeff").replace("\r\n", "\n"), 1, MAX_VALUES)
    if isinstance(node, NotYaml):
        problems.add(node.line, "", node.message)
        return Parsed(None, tuple(problems.found), {})
    if not isinstance(node, Table):
        problems.add(node.line, "", "must be a mapping that begins with `format: 1`")
        return Parsed(None, tuple(problems.found), {})
    lines = dict(_lines(node, ""))
    data = free_json(Fields(node, "", problems))
    found = None if problems.found else _Reader(lines, problems).read(data)
    return Parsed(None if problems.found else found, tuple(problems.found), lines)


def literal_secret(name: str, value: str) -> bool:
    """Whether a header or a variable of this name would hold a secret as it is.

    >>> literal_secret("Authorization", "Bearer abc"), literal_secret("X-Api-Key", "${secrets.hub.key}")
    (True, False)
    >>> literal_secret("X-Team", "harbour")
    False
    """
    return "${secrets." not in value and bool(SECRET_NAME.search(name) or SECRET_SHAPE.search(value))


def _lines(node: Node, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, Table):
        for entry in node.entries:
            below = f"{path}.{entry.key}" if path else entry.key
            yield below, entry.line
            yield from _lines(entry.value, below)
    elif isinstance(node, Sequence):
        for number, item in enumerate(node.items):
            yield f"{path}[{number}]", item.line
            yield from _lines(item, f"{path}[{number}]")


class _Reader:
    """Converts the parts of a file one by one, so that one that is wrong hides no other."""

    def __init__(self, lines: Mapping[str, int], problems: Problems) -> None:
        self._lines = lines
        self._problems = problems

    def wrong(self, path: str, message: str) -> None:
        place = path
        while place and place not in self._lines:
            place = re.sub(r"(\.[^.\[]*|\[[^\]]*\])$", "", place) if re.search(r"[.\[]", place) else ""
        self._problems.add(self._lines.get(place, 1), path, message)

    def read(self, data: dict[str, Any]) -> Declaration | None:
        parts = {
            "credentials": self._each(data, "credentials", self._credential),
            "mcp_servers": self._each(data, "mcp_servers", self._server),
            "agents": self._each(data, "agents", lambda path, raw: self.convert(raw, Agent, path)),
        }
        for part in parts:
            data.pop(part, None)
        key = data.get("model_key")
        if isinstance(key, dict) and "api_key" in key:
            self._source(key["api_key"], "model_key.api_key")
        top = self.convert(data, Declaration, "")
        if top is None or self._problems.found:
            return None
        # Once more as a whole: names of entries have patterns of their own.
        whole = msgspec.structs.replace(top, **parts)
        return self.convert(msgspec.to_builtins(whole), Declaration, "")

    def _each(self, data: Mapping[str, Any], part: str, read: Any) -> dict[str, Any]:
        raw = data.get(part, {})
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            self.wrong(part, "must be a mapping, one `NAME: …` a line")
            return {}
        seen: dict[str, str] = {}
        found = {}
        for name, value in raw.items():
            other = seen.setdefault(name.lower(), name)
            if other != name:
                self.wrong(f"{part}.{name}", f"differs from `{other}` by the case of its letters only")
            form = read(f"{part}.{name}", {} if value is None else value)
            if form is not None:
                found[name] = form
        return found

    def _credential(self, path: str, raw: Any) -> Credential | None:
        if not isinstance(raw, dict):
            self.wrong(path, REFERENCE)
            return None
        data = raw.get("data")
        sources = (
            {f"{path}.data.{field}": source for field, source in data.items()}
            if isinstance(data, dict)
            else {}
        )
        if data is not None and not isinstance(data, dict):
            self.wrong(f"{path}.data", REFERENCE)
            return None
        if "object" in raw:
            sources[f"{path}.object"] = raw["object"]
        right = [self._source(source, at) for at, source in sources.items()]
        if not all(right):
            return None
        if "object" in raw and data is not None:
            self.wrong(f"{path}.object", "give either `data` or `object`")
        elif data == {}:
            self.wrong(
                f"{path}.data", "names no field; leave `data` out where the vault has the secret already"
            )
        return self.convert(raw, Credential, path)

    def _source(self, raw: Any, path: str) -> bool:
        if not isinstance(raw, dict):
            self.wrong(path, REFERENCE)
            return False
        if len(raw.keys() & {"env", "file"}) != 1:
            self.wrong(path, "give either `env` or `file`")
            return False
        return self.convert(raw, SecretSource, path) is not None

    def _server(self, path: str, raw: Any) -> McpServer | None:
        form = self.convert(raw, McpServer, path)
        if form is None:
            return None
        for part in ("headers", "env"):
            values: dict[str, str] = getattr(form, part) or {}
            for name, value in values.items():
                if literal_secret(name, value):
                    self.wrong(f"{path}.{part}.{name}", PLACE)
        return form

    def convert(self, raw: Any, form: type[F], path: str) -> F | None:
        if isinstance(raw, dict):
            known = _known(form, "")
            for key in sorted(raw.keys() - set(known)):
                self._unknown(path, key, known)
            raw = {key: value for key, value in raw.items() if key in known}
        try:
            return msgspec.convert(raw, form)
        except msgspec.ValidationError as fault:
            self._tell(str(fault), form, path)
            return None

    def _tell(self, fault: str, form: type[msgspec.Struct], path: str) -> None:
        parts = _PATH.fullmatch(fault)
        what, below = (parts["what"], parts["path"] or "") if parts else (fault, "")
        unknown = _UNKNOWN.fullmatch(what)
        at = f"{path}{below}".replace("[...]", "").removeprefix(".")
        if missing := _MISSING.fullmatch(what):
            key = missing[1]
            self.wrong(at, f"`{key}` is missing; add {'`format: 1`' if key == 'format' and not at else 'it'}")
            return
        if unknown is None:
            self.wrong(at, what[:1].lower() + what[1:])
            return
        self._unknown(at, unknown[1], _known(form, below))

    def _unknown(self, path: str, key: str, known: list[str]) -> None:
        near = difflib.get_close_matches(key, known, 1)
        hint = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(sorted(known))}"
        self.wrong(f"{path}.{key}".removeprefix("."), f"unknown key; {hint}")


def _known(form: type[msgspec.Struct], below: str) -> list[str]:
    """The keys of the form at a path within it."""
    kind: Any = msgspec.inspect.type_info(form)
    for name, _ in _STEP.findall(below):
        kind = _struct(kind, name)
    inner = next(_structs(kind), None)
    return [field.encode_name for field in inner.fields] if inner is not None else []


def _struct(kind: Any, name: str) -> Any:
    if not name:
        return kind
    for one in _structs(kind):
        for field in one.fields:
            if field.encode_name == name:
                return field.type
    return kind


def _structs(kind: Any) -> Iterator[msgspec.inspect.StructType]:
    match kind:
        case msgspec.inspect.StructType():
            yield kind
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _structs(one)
        case msgspec.inspect.ListType(item_type=item):
            yield from _structs(item)
        case msgspec.inspect.DictType(value_type=value):
            yield from _structs(value)
        case msgspec.inspect.Metadata(type=inner):
            yield from _structs(inner)
        case _:
            return
