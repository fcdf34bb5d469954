"""The tenant's balance, and where the money went."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.protocol.ledger import Credit, ReadBalance
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem, StreamAnswer
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Positive, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, Wait, operation
from sexton_storage.paging import Page
from sexton_storage.periods import DAY_MS
from sexton_storage.records.charges import Charge, TotalsBy
from sexton_storage.records.leases import ModelShare
from sexton_storage.records.tenants import Tenant

TAG = "Billing"
NDJSON: Final = "application/x-ndjson"
EXPORTED_AT_ONCE: Final = 500
"""Charges; a line is some 400 bytes."""
DEFAULT_SPAN_MS: Final = 31 * DAY_MS
LONGEST_SPAN_MS: Final = 400 * DAY_MS

Ms = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class FreeTrial(Shape):
    active: bool
    ends_at_ms: int | None


class Balance(Shape):
    balance_nanos: int
    """Below zero for a tenant without a limit that has used more than it was given."""
    is_unlimited: bool
    """Whether work goes on whatever the balance is."""
    updated_at: int
    is_exhausted: bool
    exhausted_at: int | None
    free_trial: FreeTrial


class Period(Shape):
    """One metering row; all amounts are of this row alone."""

    event_id: UUID
    attempt: int
    slice_seq: int
    d_input_tokens: int
    d_cached_tokens: int
    d_output_tokens: int
    run_ms: int
    run_fee_nanos: int
    token_cost_nanos: int
    charged_nanos: int
    created_at: int
    d_cache_write_tokens: int


class Periods(Shape):
    items: list[Period]


class NewCredit(Body):
    amount_nanos: Positive
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


class ModelPart(Shape):
    """What one model of a run used, and what its tokens cost by its own rates."""

    provider: str
    model: str
    posture: str
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    token_cost_nanos: int


class ChargeItem(Shape):
    """What one lease of an event was billed; its slices are the event's metering rows."""

    id: UUID
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    charge_type: str
    """`stage`: work on the event. `receive` is its coming, which costs nothing: there is no such entry."""
    posture: str
    """`platform` or `self_managed`: whose model key was used."""
    model: str | None
    credit_deducted_nanos: int
    token_count_input: int
    """Those read from a cache, and those written to one, included."""
    token_count_output: int
    wall_ms: int
    recorded_at: int
    models: list[ModelPart] | None
    """Each model of a run that had more than one; null for all others."""


class ChargePage(Shape):
    items: list[ChargeItem]
    next_cursor: str | None


class ChargeQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class TotalQuery(Query):
    by: TotalsBy = TotalsBy.AGENT
    since: Ms | None = None
    """Left out: 31 days before `until`."""
    until: Ms | None = None
    """Before it; left out: now. At most 400 days after `since`."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=400)] = 100


class ChargeTotalItem(Shape):
    key: str
    """The agent's id, the model (empty: none was used), or the day as YYYY-MM-DD."""
    name: str | None
    """The agent's; null for one that was deleted, and for models and days."""
    runs: int
    """Leases that were billed."""
    charged_nanos: int
    input_tokens: int
    output_tokens: int
    wall_ms: int


class ChargeTotals(Shape):
    by: TotalsBy
    since: int
    until: int
    items: list[ChargeTotalItem]
    """Days newest first; agents and models the dearest first."""


@operation("GET", "/v1/tenants/me/billing", tag=TAG, tenant_wide=True, codes=("UZ-BILLING-002",))
async def get_balance(call: Call[NoBody, NoQuery]) -> Balance | Refusal:
    """Show the tenant's balance."""
    reply = await call.ctx.system.ask("ledger", call.member.tenant_id, ReadBalance())
    return reply if isinstance(reply, Refusal) else _view(call, reply)


@operation("GET", "/v1/tenants/me/billing/charges", tag=TAG, tenant_wide=True)
async def list_charges(call: Call[NoBody, ChargeQuery]) -> ChargePage:
    """List what the tenant's runs were billed, newest first; one entry for each lease that has ended."""
    query, tenant_id = call.query, call.member.tenant_id
    filters = fingerprint("charges", tenant_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    before = None if place is None else place.page
    rows = await call.ctx.world.storage.charges.list(tenant_id, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].recorded_at, shown[-1].id, filters)) if more else None
    return ChargePage([_charge(row) for row in shown], following)


@operation(
    "GET",
    "/v1/tenants/me/billing/charges/export",
    tag=TAG,
    tenant_wide=True,
    wait=Wait.STREAM,
    media=NDJSON,
    cookie=True,
)
async def export_charges(call: Call[NoBody, NoQuery]) -> StreamAnswer:
    """Give all that the tenant's runs were billed, newest first, a JSON object each."""
    charges, tenant_id = call.ctx.world.storage.charges, call.member.tenant_id
    # From the first page on it only goes back in time, so what is billed meanwhile does not make it endless.
    first = await charges.list(tenant_id, limit=EXPORTED_AT_ONCE)
    name = (b"content-disposition", b'attachment; filename="charges.jsonl"')
    return StreamAnswer(((b"content-type", NDJSON.encode()), name), _lines(call, tenant_id, first))


async def _lines(
    call: Call[NoBody, NoQuery], tenant_id: UUID, rows: Sequence[Charge]
) -> AsyncGenerator[bytes, None]:
    encode_lines, charges = msgspec.json.Encoder().encode_lines, call.ctx.world.storage.charges
    while rows:
        yield encode_lines([_charge(row) for row in rows])
        before = Page(rows[-1].recorded_at, rows[-1].id)
        rows = await charges.list(tenant_id, limit=EXPORTED_AT_ONCE, before=before)


@operation("GET", "/v1/tenants/me/billing/totals", tag=TAG, tenant_wide=True, codes=("UZ-REQ-001",))
async def total_charges(call: Call[NoBody, TotalQuery]) -> ChargeTotals:
    """Add up what the tenant's runs were billed, by agent, model or UTC day.

    A run counts where it ended. One that used several models counts as its first; its charge lists them all.
    """
    query, now = call.query, call.ctx.world.now_ms()
    until = now + 1 if query.until is None else query.until
    since = max(0, until - DEFAULT_SPAN_MS) if query.since is None else query.since
    if not 0 <= until - since <= LONGEST_SPAN_MS:
        detail = "until: at most 400 days after since, and not before it"
        raise Problem("UZ-REQ-001", detail, facts={"parameter": "until"})
    rows = await call.ctx.world.storage.charges.totals(
        call.member.tenant_id, query.by, since=since, until=until, limit=query.limit
    )
    items = [ChargeTotalItem(**msgspec.structs.asdict(row)) for row in rows]
    return ChargeTotals(query.by, since, until, items)


@operation("GET", "/v1/tenants/me/billing/charges/{event_id}/metering-periods", tag=TAG, tenant_wide=True)
async def list_metering_periods(call: Call[NoBody, NoQuery]) -> Periods:
    """List the metering rows of one event, oldest first; none for another tenant's."""
    rows = await call.ctx.world.storage.metering.list(call.member.tenant_id, call.id("event_id"))
    return Periods([Period(**msgspec.structs.asdict(row)) for row in rows])


@operation(
    "POST",
    "/v1/admin/tenants/{tenant_id}/credit",
    tag=TAG,
    auth=Auth.PLATFORM,
    creates=Creates.AGAIN,
    codes=("UZ-TENANT-001",),
)
async def credit_tenant(call: Call[NewCredit, NoQuery]) -> Balance | Refusal:
    """Add to a tenant's balance; work that waited for it goes on."""
    tenant_id = call.id("tenant_id")
    if await call.ctx.world.storage.tenants.load(tenant_id) is None:
        raise Problem("UZ-TENANT-001", f"there is no tenant {tenant_id}")
    message = Credit(call.body.amount_nanos, call.body.reason, call.member.by, call.new_id())
    reply = await ask(call.ctx.system, "ledger", tenant_id, message)
    return reply if isinstance(reply, Refusal) else _view(call, reply)


def _charge(row: Charge) -> ChargeItem:
    fields = msgspec.structs.asdict(row)
    del fields["tenant_id"]
    fields["models"] = None if row.models is None else [_part(share) for share in row.models]
    return ChargeItem(**fields)


def _part(share: ModelShare) -> ModelPart:
    return ModelPart(
        provider=share.provider,
        model=share.model,
        posture="self_managed" if share.own_key else "platform",
        input_tokens=share.input_tokens,
        cached_input_tokens=share.cached_input_tokens,
        cache_write_tokens=share.cache_write_tokens,
        output_tokens=share.output_tokens,
        token_cost_nanos=share.token_cost_nanos,
    )


def _view(call: Call[Any, Any], tenant: Tenant) -> Balance:
    world = call.ctx.world
    return Balance(
        balance_nanos=tenant.balance_nanos,
        is_unlimited=tenant.unlimited,
        updated_at=tenant.updated_at,
        is_exhausted=tenant.exhausted_at is not None,
        exhausted_at=tenant.exhausted_at,
        free_trial=FreeTrial(world.terms.is_trial(world.now_ms()), world.terms.free_trial_ends_ms),
    )
