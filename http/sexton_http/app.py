"""Builds the app: every route on Quart, and in front of it the mount that answers the hot ones."""

from collections.abc import Sequence
from typing import cast

from sexton_http.describe.documents import make_documents
from sexton_http.gateway.hot_mount import HotMount
from sexton_http.gateway.limits import Limiter
from sexton_http.gateway.operations import Operation
from sexton_http.gateway.pipeline import Mounted
from sexton_http.gateway.quart_mount import make_quart
from sexton_http.gateway.services import make_services
from sexton_http.identity.context import HttpContext
from sexton_http.routes.removed import PREFIXES, gone
from sexton_http.routes.table import OPERATIONS
from sexton_http.wire.asgi import App


def create_app(
    ctx: HttpContext,
    *,
    operations: Sequence[Operation] = OPERATIONS,
    limiter: Limiter | None = None,
    fast: bool = True,
) -> App:
    """The ASGI app of a server. Without ``fast`` all goes through Quart, for comparison."""
    documents = make_documents(operations, ctx.settings.base_url)
    services = make_services(ctx, documents, limiter)
    routes = [Mounted(operation, services) for operation in operations]
    services.routes.update({mounted.operation.name: mounted for mounted in routes})
    quart = make_quart(services, routes, removed=PREFIXES, gone=gone)
    return HotMount(services, routes, cast(App, quart), fast=fast)
