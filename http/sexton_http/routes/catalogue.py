"""The public catalogue: which models there are, and what they and a run's time cost."""

import hashlib
import hmac
from typing import Annotated, Final

import msgspec

from sexton_actors.catalogue import Catalogue, Model
from sexton_actors.terms import RUN_NANOS_PER_SEC
from sexton_http.answers import JSON_TYPE, Answer, Headers, Problem
from sexton_http.bodies.shapes import Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation

TAG = "Catalogue"
MAX_AGE_S: Final = 300
NOT_MODIFIED: Final = 304
EVENT_NANOS: Final = 0
"""An event by itself costs nothing: what runs is billed."""


class ModelRow(Shape):
    """Rates in nanos of a US dollar for a million tokens."""

    id: str
    provider: str
    context_cap_tokens: int
    input_nanos_per_mtok: int
    cached_input_nanos_per_mtok: int
    output_nanos_per_mtok: int
    cache_write_nanos_per_mtok: int
    """For input that is written to a prompt cache."""


class RateBlock(Shape):
    run_nanos_per_sec: int
    event_nanos: int


class BillingBlock(Shape):
    starter_credit_nanos: int
    free_trial_end_ms: int
    """0: there is no free trial."""
    free_trial_stage_nanos: int
    """For a second of a run that begins within the trial."""


class PublicCatalogue(Shape):
    version: str
    """The day of the prices, YYYY-MM-DD."""
    models: list[ModelRow]
    rates: RateBlock
    billing: BillingBlock


class ModelList(Shape):
    version: str
    """The day of the prices, YYYY-MM-DD."""
    items: list[ModelRow]
    rates: RateBlock


class CatalogueQuery(Query):
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    """Only the row of this id."""


@operation(
    "GET",
    "/_um/{public_key}/cap.json",
    tag=TAG,
    auth=Auth.PUBLIC,
    answer=PublicCatalogue,
    extra_statuses=(NOT_MODIFIED,),
    codes=("UZ-REQ-003", "UZ-CATALOGUE-001", "UZ-API-003"),
    no_io=True,
)
async def show_catalogue(call: Call[NoBody, CatalogueQuery]) -> Answer:
    """Show models and rates, to be kept for five minutes and asked for again by ETag."""
    kept = call.ctx.catalogue_key
    if not kept or not hmac.compare_digest(call.text("public_key").encode(), kept.encode()):
        raise Problem("UZ-REQ-003", "there is no catalogue under this key")
    catalogue = call.ctx.world.catalogue
    if not catalogue.models:
        raise Problem("UZ-CATALOGUE-001", "the operator offers no model", wait_s=MAX_AGE_S)
    document = _document(call, catalogue)
    tag = _tag(document)
    headers: Headers = ((b"etag", tag), (b"cache-control", b"public, max-age=%d" % MAX_AGE_S))
    if _has(call.head.headers.get(b"if-none-match"), tag):
        return Answer(NOT_MODIFIED, headers, b"")
    body = msgspec.json.encode({**msgspec.structs.asdict(document), "request_id": call.request_id})
    return Answer(200, (JSON_TYPE, *headers), body)


@operation("GET", "/v1/models", tag=TAG)
async def list_models(call: Call[NoBody, NoQuery]) -> ModelList:
    """List the models that the operator offers, and what they and a run's time cost."""
    catalogue = call.ctx.world.catalogue
    rows = [_row(model) for model in catalogue.models]
    return ModelList(catalogue.version, rows, RateBlock(RUN_NANOS_PER_SEC, EVENT_NANOS))


def _document(call: Call[NoBody, CatalogueQuery], catalogue: Catalogue) -> PublicCatalogue:
    terms, wanted = call.ctx.world.terms, call.query.model
    return PublicCatalogue(
        version=catalogue.version,
        models=[_row(model) for model in catalogue.models if wanted in {None, model.id}],
        rates=RateBlock(RUN_NANOS_PER_SEC, EVENT_NANOS),
        billing=BillingBlock(
            terms.sign_in_nanos or 0, terms.free_trial_ends_ms or 0, terms.free_trial_nanos_per_sec
        ),
    )


def _row(model: Model) -> ModelRow:
    return ModelRow(**{**msgspec.structs.asdict(model), "cache_write_nanos_per_mtok": model.write_rate})


def _tag(document: PublicCatalogue) -> bytes:
    """Weak: two answers that say the same differ in their request's id."""
    said = hashlib.sha256(msgspec.json.encode(document)).hexdigest()[:16]
    return f'W/"{document.version}-{said}"'.encode()


def _has(given: bytes | None, tag: bytes) -> bool:
    """Whether the client has it: by weak comparison, as RFC 9110 has it for this header."""
    if given is None:
        return False
    known = {each.strip().removeprefix(b"W/") for each in given.split(b",")}
    return b"*" in known or tag.removeprefix(b"W/") in known
