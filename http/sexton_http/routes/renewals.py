"""Renews leases, one or many at once."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.refusal import Refusal
from sexton_engine import ActorSystem, AskTimeout, EngineError, Message
from sexton_http.answers import Problem
from sexton_http.bodies.fencing_token import HOT_S, TAG, Token
from sexton_http.bodies.lenient import ItemDecoder
from sexton_http.bodies.shapes import Body, Count, Shape
from sexton_http.bodies.token_counts import Fallbacks, tokens_of
from sexton_http.gateway.call import Call
from sexton_http.gateway.faults import as_problem, is_stalled
from sexton_http.gateway.operations import KIB, Auth, NoQuery, operation
from sexton_http.problems import CODES
from sexton_storage.errors import StorageError, StorageUnavailable

MAX_RENEWALS = 1024

Fault = EngineError | StorageError


class Usage(Body):
    """Cumulative over the lease."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    run_ms: Count | None = None
    cache_write_tokens: Count = 0
    """Written to a prompt cache; not among ``input_tokens``. Of a runner that says none, they are."""
    fallbacks: Fallbacks = ()
    """What each model after the first has used of those counts, in the order of ``policy.fallbacks``."""


class RenewalBody(Usage):
    fencing_token: Token = None


class RenewalAnswer(Shape):
    lease_expires_at: int
    slice_seq: int
    charged_nanos: int
    balance_nanos: int
    ceiling_at: int
    state: str
    """``active`` or ``cancelling``."""


RENEWAL_CODES = ("UZ-RUN-006", "UZ-RUN-010", "UZ-RUN-011", "UZ-RUN-012", "UZ-ZMB-001")


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/renew",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    codes=RENEWAL_CODES,
    answer=RenewalAnswer,
)
async def renew_lease(call: Call[RenewalBody, NoQuery]) -> Renewal | Refusal:
    """Extend a lease by one term, and be billed for the slice since the last."""
    use = call.body
    message = Renew(
        call.host.runner.id,
        use.input_tokens,
        use.cached_input_tokens,
        use.output_tokens,
        use.run_ms,
        use.fencing_token,
        use.cache_write_tokens,
        tokens_of(use.fallbacks) if use.fallbacks else (),
    )
    return await call.ctx.system.ask("lease", call.id("lease_id"), message, timeout=HOT_S)


class OneRenewal(Usage, kw_only=True):
    lease_id: UUID
    fencing_token: Count


class Renewals(Body):
    leases: Annotated[tuple[OneRenewal, ...], msgspec.Meta(max_length=MAX_RENEWALS)]
    """One that is malformed fails by itself; one that comes again is renewed once, by what it says last."""

    @classmethod
    def salvage(cls, plain: Any) -> "Renewals | None":
        """Those that can be read; the others are kept with what is wrong with them."""
        items = plain.get("leases") if isinstance(plain, dict) and len(plain) == 1 else None
        if not isinstance(items, list) or len(items) > MAX_RENEWALS:
            return None
        read = [ONE_RENEWAL.take(item) for item in items]
        spoilt = tuple(
            (place, _said_id(item), one.code)
            for place, (item, one) in enumerate(zip(items, read, strict=True))
            if isinstance(one, Problem)
        )
        return SpoiltRenewals(tuple(one for one in read if isinstance(one, OneRenewal)), spoilt)


class SpoiltRenewals(Renewals):
    """The renewals that cannot be read: their places, their ids if they had one, and the codes."""

    spoilt: tuple[tuple[int, str | None, str], ...]


ONE_RENEWAL = ItemDecoder(OneRenewal)


def _said_id(item: Any) -> str | None:
    said = item.get("lease_id") if isinstance(item, dict) else None
    return said if isinstance(said, str) else None


SaidId = Annotated[Any, msgspec.Meta(extra_json_schema={"type": ["string", "null"]})]


class RenewalResult(Shape, omit_defaults=True):
    """With ``ok`` the fields of a renewal, else the code and status that alone it would have had."""

    lease_id: SaidId
    """As it was sent."""
    ok: bool
    lease_expires_at: int | None = None
    slice_seq: int | None = None
    charged_nanos: int | None = None
    balance_nanos: int | None = None
    ceiling_at: int | None = None
    state: str | None = None
    error_code: str | None = None
    status: int | None = None


class RenewalResults(Shape):
    results: list[RenewalResult]


@operation("POST", "/v1/runners/me/leases:renew", tag=TAG, auth=Auth.RUNNER, hot=True, max_body=512 * KIB)
async def renew_leases(call: Call[Renewals, NoQuery]) -> RenewalResults:
    """Extend many leases at once; each has its own result, in the order asked."""
    runner_id, given = call.host.runner.id, call.body.leases
    leases = {_key(one): one for one in given}
    asks = [
        (
            one.lease_id,
            Renew(
                runner_id,
                one.input_tokens,
                one.cached_input_tokens,
                one.output_tokens,
                one.run_ms,
                one.fencing_token,
                one.cache_write_tokens,
                tokens_of(one.fallbacks) if one.fallbacks else (),
            ),
        )
        for one in leases.values()
    ]
    replies = await _ask_all(call.ctx.system, asks)
    if any(isinstance(reply, AskTimeout) for reply in replies) and await is_stalled(call.ctx.world.storage):
        away = StorageUnavailable("the database does not answer")
        replies = [away if isinstance(reply, AskTimeout) else reply for reply in replies]
    results = [_result(one.lease_id, reply) for one, reply in zip(leases.values(), replies, strict=True)]
    if len(results) != len(given):
        by_key = dict(zip(leases, results, strict=True))
        results = [by_key[_key(one)] for one in given]
    if isinstance(call.body, SpoiltRenewals):
        for place, lease_id, code in call.body.spoilt:
            spoilt = RenewalResult(lease_id, ok=False, error_code=code, status=CODES[code].status)
            results.insert(place, spoilt)
    return RenewalResults(results)


def _key(one: OneRenewal) -> tuple[int, int]:
    return one.lease_id.int, one.fencing_token  # A number is hashed without a call of Python.


async def _ask_all(
    system: ActorSystem, asks: Sequence[tuple[UUID, Message[Renewal | Refusal]]]
) -> list[Renewal | Refusal | Fault]:
    """The replies in the order of the questions; one that failed has its fault in place of a reply.

    All are under way together, so that what they write is committed together. Any other fault is raised.
    """
    replies: list[Renewal | Refusal | Fault] = []
    for reply in await system.ask_all("lease", asks, timeout=HOT_S):
        if isinstance(reply, Exception) and not isinstance(reply, EngineError | StorageError):
            raise reply
        replies.append(reply)
    return replies


def _result(lease_id: UUID, reply: Renewal | Refusal | Fault) -> RenewalResult:
    match reply:
        case Renewal():
            return RenewalResult(
                lease_id,
                True,  # noqa: FBT003 - by position it is twice as fast, and this is the hottest of all
                reply.lease_expires_at,
                reply.slice_seq,
                reply.charged_nanos,
                reply.balance_nanos,
                reply.ceiling_at,
                reply.state,
            )
        case Refusal(code=code):
            return RenewalResult(lease_id, ok=False, error_code=code, status=CODES[code].status)
        case _:
            row = as_problem(reply).row
            return RenewalResult(lease_id, ok=False, error_code=row.code, status=row.status)
