"""What a route is: one typed declaration, from which checks, OpenAPI and reference are made."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from sexton_actors.refusal import Refusal
from sexton_http.answers import Answer, Problem, StreamAnswer
from sexton_http.gateway.admission import Ingress
from sexton_http.gateway.audit_action import Audit
from sexton_http.gateway.call import Call
from sexton_http.gateway.incoming_form import Intake
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.services import Services
from sexton_http.problems import CODES
from sexton_storage.records.users import Role

KIB: Final = 1024
MAX_BODY_BYTES: Final = 2 * 1024 * KIB
"""The largest body of any route."""
MAX_FILES_BYTES: Final = 1024 * KIB
"""An agent's two files, however their characters are escaped."""
MAX_CHAT_FORM_BYTES: Final = 256 * KIB
"""A form of a chat platform, which repeats the message that it belongs to."""
MAX_WEBHOOK_BYTES: Final = 1024 * KIB
MAX_SEQ: Final = 2**62
"""The largest number of a frame in a stream."""


class NoBody(msgspec.Struct, frozen=True):
    """The request's body is not looked at."""


class NoQuery(msgspec.Struct, frozen=True):
    """The query has no fields."""


class Auth(Enum):
    """Who may call."""

    PUBLIC = "nobody in particular"
    MEMBER = "an API key or a user token"
    PLATFORM = "a user token of a platform admin"
    BROWSER = "a signed-in browser, from pages of this server"
    RUNNER = "a runner token"
    ENROLMENT = "an enrolment token, or a platform admin"
    APPROVAL = "the agent's approval token"
    WEBHOOK = "the sender's signature or secret"
    SCRAPER = "nobody in particular on a server that only its own machine reaches, else the metrics token"


class Creates(Enum):
    """What an Idempotency-Key means to a route, when the server died before it could keep its answer."""

    NOTHING = "such keys mean nothing here"
    AGAIN = "it is done again, and comes out the same: what it makes has ids and secrets that come of the key"
    EVENT = "it is done again at once: the key is kept with the event that it makes, in one commit"
    ONCE = "it is not done again for a while, and its outcome stays open meanwhile"


class Wait(Enum):
    """What kind of deadline a call has."""

    ORDINARY = "30 s"
    LONG_POLL = "as long as it asks to wait, and 30 s"
    STREAM = "none; ends when either side closes"

    @property
    def counted(self) -> str:
        """What calls of this kind are counted as."""
        return {Wait.ORDINARY: "requests", Wait.LONG_POLL: "long polls", Wait.STREAM: "streams"}[self]


Handler = Callable[[Call[Any, Any]], Awaitable[Any]]
Oversize = Callable[[Services, Mapping[str, Any]], Awaitable[Problem]]
"""Asked instead of the handler when the body is over ``max_body``: the problem to answer with."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. ``codes`` are its own; those that come with what it declares are in ``all_codes``."""

    method: str
    path: str
    handler: Handler
    tag: str
    auth: Auth
    role: Role | None
    body: type[msgspec.Struct]
    query: type[msgspec.Struct]
    answer: Any
    status: int
    codes: tuple[str, ...]
    hot: bool
    wait: Wait
    max_body: int
    media: str
    """The media type of a success; several are separated by commas."""
    never_shed: bool
    no_io: bool
    """Neither the database nor an actor is asked, so neither can fail it."""
    deprecated: bool
    starts_work: bool
    oversize: Oversize | None
    extra_statuses: tuple[int, ...]
    """Other statuses that are a success, or at least no problem document."""
    untraced: bool
    """The answer is a document of another standard, to which nothing is added."""
    creates: Creates
    quota: Quota | None
    """The quota of one address, in addition to the rates of the plan."""
    cookie: bool
    """A signed-in browser needs no token."""
    form: type[msgspec.Struct] | None
    """What a page's form sends; the handler decodes it."""
    press: bool
    """The signed form of a chat platform is taken in place of token and body."""
    agents: str
    """An agent's key reaches this for its own agent, and gets this code for another; empty: it does not."""
    tenant_wide: bool
    """What it touches is more than one workspace's: a token that is limited to one does not reach it."""
    documented_body: type[msgspec.Struct] | None
    """A body that is described, and never looked at."""
    resumes: str
    """A stream that goes on after the header Last-Event-ID: the component that describes it; else empty."""
    secret: bool
    """The answer has a secret: an Idempotency-Key has it repeated to whoever was given it, to nobody else."""
    takes_bytes: bool
    """The handler reads the body's bytes itself."""
    ranges: bool
    """The answer is a file, of which a range can be asked for (RFC 9110)."""
    intake: Intake | None
    """A form with files is taken in place of JSON, part by part; for members only."""
    audit: Audit | None = None
    """What the audit log says of it; ``routes.audit_actions`` has all of them."""

    @property
    def name(self) -> str:
        return self.handler.__name__

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").partition("\n")[0]

    @property
    def notes(self) -> str:
        return (self.handler.__doc__ or "").partition("\n")[2].strip()

    @property
    def params(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def ids(self) -> tuple[str, ...]:
        """The parameters that must be UUIDs; what is gone is gone under whatever id."""
        return () if self.deprecated else tuple(filter(is_id, self.params))

    @property
    def in_workspace(self) -> bool:
        return "workspace_id" in self.params

    @property
    def has_body(self) -> bool:
        return self.body is not NoBody

    @property
    def takes_nothing(self) -> bool:
        """A body, if one comes, is to be empty or an object without fields."""
        told = self.form is not None or self.press or self.takes_bytes or self.method == "GET"
        return not self.has_body and not told and (self.auth is Auth.MEMBER or self.auth is Auth.PLATFORM)

    @property
    def reads_body(self) -> bool:
        """Whether anything looks at what is sent; a body that nobody reads stays unread."""
        other = self.form is not None or self.press or self.takes_bytes or self.auth is Auth.WEBHOOK
        return self.has_body or self.takes_nothing or other

    @property
    def ingress(self) -> Ingress | None:
        """Which door this comes in by; None: it never waits in line.

        Runners' calls finish work, some routes tell how things are, and streams have a ceiling of their own.
        """
        if self.never_shed or self.auth is Auth.RUNNER or self.wait is Wait.STREAM:
            return None
        return Ingress.WEBHOOKS if self.auth is Auth.WEBHOOK else Ingress.PEOPLE

    @property
    def body_optional(self) -> bool:
        """No body at all means one without fields, where none is required."""
        return self.has_body and all(not field.required for field in msgspec.structs.fields(self.body))

    @cache  # noqa: B019 - routes are declared once and stay
    def all_codes(self) -> tuple[str, ...]:
        """Every code this can answer with, in the order of the table."""
        mine = {*self.codes, *GENERAL_CODES, *_BY_AUTH[self.auth]}
        if self.never_shed:
            mine -= {"UZ-API-001", "UZ-API-005", "UZ-REQ-006"}
        if self.no_io:
            # A large answer may still find no room; then the declaration says so.
            mine -= {"UZ-API-003", "UZ-INTERNAL-001", "UZ-INTERNAL-002"} - {*self.codes}
        if self.agents:
            mine.add(self.agents)
        if self.role not in {None, Role.VIEWER}:
            mine.add("UZ-AUTH-009")
        if self.has_body or self.takes_nothing:
            mine.add("UZ-REQ-001")
        if self.reads_body:
            mine |= {"UZ-REQ-005", "UZ-API-004"}
            if self.oversize is None:
                mine.add("UZ-REQ-002")
        if self.query is not NoQuery:
            mine.add("UZ-REQ-001")
        if self.ids or any(has_id(shape) for shape in (self.body, self.query)):
            mine.add("UZ-UUIDV7-009")
        if self.in_workspace:
            mine.add("UZ-WORKSPACE-001")
            if self.auth is not Auth.PUBLIC:
                mine.add("UZ-AUTH-001")
        if self.creates is not Creates.NOTHING:
            mine |= {"UZ-REQ-001", "UZ-REQ-007", "UZ-REQ-008"}
        if self.press:
            mine |= {"UZ-APPROVAL-003", "UZ-REQ-001"}
        if self.starts_work:
            mine.add("UZ-WORKSPACE-002")
        if self.wait is Wait.STREAM:
            mine ^= {"UZ-API-001", "UZ-API-002"}
        return tuple(code for code in CODES if code in mine)

    def status_of(self, code: str) -> int:
        """What this answers a code with: its own status, with one exception."""
        # Senders of webhooks come again by themselves, but only after a 503.
        return 503 if self.auth is Auth.WEBHOOK and code in _UNTIL_LATER else CODES[code].status


_UNTIL_LATER: Final = frozenset({"UZ-ZMB-001", "UZ-ENTL-003", "UZ-API-001", "UZ-EVENT-002"})
"""A budget or the plan's events are used up, or the server or the queue is full: later it may be taken."""
_MAX_BODY: Final[Mapping[Auth, int]] = {
    Auth.PUBLIC: 16 * KIB,
    Auth.SCRAPER: 16 * KIB,
    Auth.MEMBER: 64 * KIB,
    Auth.PLATFORM: 64 * KIB,
    Auth.BROWSER: 16 * KIB,
    Auth.RUNNER: 64 * KIB,
    Auth.ENROLMENT: 64 * KIB,
    Auth.APPROVAL: MAX_CHAT_FORM_BYTES,
    Auth.WEBHOOK: MAX_WEBHOOK_BYTES,
}
"""What a route takes that says nothing else: more than the largest values of its fields need."""
GENERAL_CODES: Final = frozenset(
    {
        "UZ-API-001",
        "UZ-API-003",
        "UZ-API-005",
        "UZ-INTERNAL-001",
        "UZ-INTERNAL-002",
        "UZ-INTERNAL-003",
        "UZ-REQ-006",
    }
)
_MEMBER: Final = frozenset(
    {
        "UZ-AUTH-001",
        "UZ-AUTH-002",
        "UZ-AUTH-003",
        "UZ-AUTH-004",
        "UZ-AUTH-010",
        "UZ-APIKEY-004",
    }
)
_BY_AUTH: Final[Mapping[Auth, frozenset[str]]] = {
    Auth.PUBLIC: frozenset(),
    Auth.MEMBER: _MEMBER,
    Auth.PLATFORM: _MEMBER | {"UZ-AUTH-021"},
    Auth.BROWSER: frozenset({"UZ-AUTH-001", "UZ-AUTH-002"}),
    Auth.RUNNER: frozenset({"UZ-RUN-001", "UZ-RUN-009"}),
    Auth.ENROLMENT: _MEMBER | {"UZ-AUTH-021", "UZ-RUN-015"},
    Auth.APPROVAL: frozenset({"UZ-AUTH-002", "UZ-WH-001"}),
    Auth.WEBHOOK: frozenset(),
    Auth.SCRAPER: frozenset({"UZ-AUTH-002"}),
}


def is_id(param: str) -> bool:
    """Whether a parameter of a path is a UUID: its name says so."""
    return param.endswith("_id")


@cache
def has_id(shape: type[msgspec.Struct]) -> bool:
    """Whether a body or a query is refused for an id; items that are gathered fail each by itself."""
    if hasattr(shape, "gather"):
        return False
    return b'"format":"uuid"' in msgspec.json.encode(msgspec.json.schema(shape))


def operation(  # noqa: PLR0913 - a declaration says many things, by keyword
    method: str,
    path: str,
    *,
    tag: str,
    auth: Auth = Auth.MEMBER,
    role: Role | None = None,
    status: int = 200,
    codes: tuple[str, ...] = (),
    answer: Any = None,
    hot: bool = False,
    wait: Wait = Wait.ORDINARY,
    max_body: int | None = None,
    media: str = "application/json",
    never_shed: bool = False,
    no_io: bool = False,
    deprecated: bool = False,
    starts_work: bool = False,
    oversize: Oversize | None = None,
    extra_statuses: tuple[int, ...] = (),
    untraced: bool = False,
    creates: Creates = Creates.NOTHING,
    quota: Quota | None = None,
    cookie: bool = False,
    form: type[msgspec.Struct] | None = None,
    press: bool = False,
    agents: str = "",
    tenant_wide: bool = False,
    documented_body: type[msgspec.Struct] | None = None,
    resumes: str = "",
    secret: bool = False,
    takes_bytes: bool = False,
    ranges: bool = False,
    intake: Intake | None = None,
) -> Callable[[Handler], Operation]:
    """Declare a route; the types of its body, query and answer are those of the handler's signature.

    ``role``: the least that may call it, where members do. None: a viewer may look, a user may change.
    """
    least = role or (Role.VIEWER if method == "GET" else Role.USER)

    def declare(handler: Handler) -> Operation:
        hints = get_type_hints(handler)
        body, query = get_args(hints["call"])
        unknown = [code for code in (*codes, agents) if code and code not in CODES]
        if unknown:
            raise ValueError(f"{method} {path} declares {unknown}, which no table has")
        return Operation(
            method=method,
            path=path,
            handler=handler,
            tag=tag,
            auth=auth,
            role=least if auth is Auth.MEMBER else None,
            body=body,
            query=query,
            answer=answer if answer is not None else _answer_of(hints["return"]),
            status=status,
            codes=codes,
            hot=hot,
            wait=wait,
            max_body=_MAX_BODY[auth] if max_body is None else max_body,
            media=media,
            never_shed=never_shed,
            no_io=no_io,
            deprecated=deprecated,
            starts_work=starts_work,
            oversize=oversize,
            extra_statuses=extra_statuses,
            untraced=untraced,
            creates=creates,
            quota=quota,
            cookie=cookie,
            form=form,
            press=press,
            agents=agents,
            tenant_wide=tenant_wide or auth is Auth.PLATFORM,
            documented_body=documented_body,
            resumes=resumes,
            secret=secret,
            takes_bytes=takes_bytes,
            ranges=ranges,
            intake=intake,
        )

    return declare


def _answer_of(hint: Any) -> Any:
    """The declared answer without what is no document: refusals, nothing, and answers made by hand."""
    options = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    documents = [option for option in options if option not in {Refusal, NoneType, Answer, StreamAnswer}]
    if len(documents) > 1:
        raise TypeError(f"a route has one shape of answer, not {documents}")
    return documents[0] if documents else None
