"""What is said of each method of a client, and how it is spelled in Python."""

from dataclasses import dataclass
from typing import Final

from clients.maker.text import mapping

WORKSPACE: Final = "workspace_id"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a method: its name in Python and on the wire, and its type."""

    name: str
    wire: str
    type: str
    required: bool

    @property
    def declared(self) -> str:
        return f"{self.name}: {self.type}" if self.required else f"{self.name}: {self.type} | None = None"


@dataclass(frozen=True, slots=True)
class Method:
    """One method of a group."""

    name: str
    constant: str
    doc: str
    returns: str
    path: list[Argument]
    query: list[Argument]
    body: list[Argument]
    raw_body: str | None
    keyed: bool
    item: str | None
    """What a list holds; None where it is no list of pages."""
    paged_by: str | None

    @property
    def each(self) -> str:
        return "each" if self.name == "list" else f"each_of_{self.name}"

    @property
    def positional(self) -> list[Argument]:
        return [argument for argument in self.path if argument.wire != WORKSPACE]

    @property
    def in_workspace(self) -> bool:
        return any(argument.wire == WORKSPACE for argument in self.path)

    def named(self, *without: str) -> list[str]:
        """Declarations of the arguments that are given by name, those that are needed first."""
        every = [argument for argument in (*self.body, *self.query) if argument.wire not in without]
        told = [a.declared for a in every if a.required] + [a.declared for a in every if not a.required]
        if self.in_workspace:
            told.append(f"{WORKSPACE}: str | None = None")
        if self.keyed:
            told.append("idempotency_key: str | None = None")
        return told

    def declared(self, *without: str) -> str:
        parts = ["self", *(argument.declared for argument in self.positional)]
        if self.raw_body is not None:
            parts.append(f"content: {self.raw_body}")
        named = self.named(*without)
        return ", ".join([*parts, "*", *named] if named else parts)

    def passed(self, place: str) -> str:
        """How ``each`` calls the method for one page."""
        parts = [argument.name for argument in self.positional]
        parts += [f"{a.name}={a.name}" for a in (*self.body, *self.query) if a.wire != place]
        parts.append(f"{place}={place}")
        if self.in_workspace:
            parts.append(f"{WORKSPACE}={WORKSPACE}")
        return ", ".join(parts)

    def where(self) -> str:
        return mapping((a.wire, a.name) for a in self.path)

    def asked(self) -> str:
        return mapping((a.wire, a.name) for a in self.query)

    def sent(self) -> str | None:
        if self.raw_body is not None:
            return "content"
        if not self.body:
            return None
        needed = mapping((a.wire, a.name) for a in self.body if a.required)
        more = mapping((a.wire, a.name) for a in self.body if not a.required)
        if more == "{}":
            return needed
        return f"given({more})" if needed == "{}" else f"{needed} | given({more})"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of methods, as one attribute of the client."""

    name: str
    doc: str
    methods: list[Method]
    extended: bool

    @property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))
