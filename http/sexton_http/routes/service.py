"""What every service has: health, readiness, metrics, its keys, its own description."""

from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from prometheus_client import exposition
from prometheus_client.openmetrics import exposition as open_metrics

from sexton_http.answers import JSON_TYPE, Answer
from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.identity.context import VERSION, WorkerHealth

TAG = "Service"
PLAIN: Final = (exposition.generate_latest, exposition.CONTENT_TYPE_LATEST)
OPEN_METRICS: Final = (open_metrics.generate_latest, open_metrics.CONTENT_TYPE_LATEST)


class Health(Shape):
    status: str
    service: str
    version: str
    workers: list[WorkerHealth] | UnsetType = UNSET
    """How each process is, where several serve."""


class MetricsQuery(msgspec.Struct, frozen=True):
    by: Literal["worker"] | None = None
    """Each worker's own numbers, under the label ``worker``; without it, the sums."""


class Readiness(Shape):
    ready: bool
    database: bool
    checks: dict[str, bool]


class PublicKey(Shape):
    """One key of RFC 7517, of the kind that the built-in issuer signs with."""

    kty: str
    crv: str
    x: str
    kid: str
    alg: str
    use: str


class KeySet(Shape):
    keys: list[PublicKey]


@operation("GET", "/healthz", tag=TAG, auth=Auth.PUBLIC, hot=True, never_shed=True, no_io=True)
async def healthz(call: Call[NoBody, NoQuery]) -> Health:
    """Say that the process answers."""
    siblings = call.ctx.siblings
    return Health("ok", "sexton", VERSION, UNSET if siblings is None else siblings.health())


@operation(
    "GET", "/readyz", tag=TAG, auth=Auth.PUBLIC, never_shed=True, answer=Readiness, extra_statuses=(503,)
)
async def readyz(call: Call[NoBody, NoQuery]) -> Answer:
    """Say whether work can be done: 200, or 503 without the database or while stopping."""
    database = await call.ctx.world.storage.healthy()
    checks = {"database": database, "accepting": not call.ctx.stop.is_set()}
    ready = all(checks.values())
    view = {"ready": ready, "database": database, "checks": checks, "request_id": call.request_id}
    return Answer(200 if ready else 503, (JSON_TYPE,), msgspec.json.encode(view))


@operation(
    "GET", "/metrics", tag=TAG, auth=Auth.SCRAPER, never_shed=True, no_io=True, media="text/plain", answer=str
)
async def metrics(call: Call[NoBody, MetricsQuery]) -> Answer:
    """Show the counters, as Prometheus reads them. Of several workers: the sums, or each.

    As OpenMetrics, with exemplars, to whoever names `application/openmetrics-text` in `Accept`.
    """
    # The library's own choice repeats what the header says, and stumbles over a version that is none.
    named = {
        part.partition(";")[0].strip().lower() for part in (call.head.header(b"accept") or "").split(",")
    }
    encode, media = OPEN_METRICS if "application/openmetrics-text" in named else PLAIN
    headers = ((b"content-type", media.encode()), (b"vary", b"accept"))
    siblings = call.ctx.siblings
    if siblings is None:
        return Answer(200, headers, encode(call.ctx.registry))
    return Answer(200, headers, await siblings.text(encode, by_worker=call.query.by is not None))


@operation(
    "GET", "/.well-known/jwks.json", tag=TAG, auth=Auth.PUBLIC, answer=KeySet, untraced=True, no_io=True
)
async def jwks(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the public keys of the built-in issuer."""
    cache = (b"cache-control", b"public, max-age=300")
    return Answer(200, (JSON_TYPE, cache), msgspec.json.encode(call.ctx.issuer.jwks))
