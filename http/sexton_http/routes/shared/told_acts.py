"""Lets a page's form do what a route does, told in the audit log as that route tells it."""

from typing import Any

import msgspec

from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Operation
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.form_actions import act
from sexton_http.routes.audit_actions import AUDITED


async def act_told(
    call: Call[Any, Any],
    who: SignedIn,
    route: Operation,
    *,
    body: msgspec.Struct | None = None,
    query: msgspec.Struct | None = None,
    **params: Any,
) -> Any:
    """As ``act``; for a form with several buttons, which has no one action of its own.

    ``params``: those of the route's path that the page's path has not.
    """
    told = msgspec.structs.replace(call, params={**call.params, **params}, audit=AUDITED.get(route.name))
    return await act(told, who, route, body=body, query=query)
