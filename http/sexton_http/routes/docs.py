"""The service's description of itself."""

from typing import Any, Final

from sexton_http.answers import JSON_TYPE, Answer, Headers
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation

TAG = "Service"
HTML: Final[Headers] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)


@operation(
    "GET",
    "/openapi.json",
    tag=TAG,
    auth=Auth.PUBLIC,
    answer=dict[str, Any],
    untraced=True,
    no_io=True,
    codes=("UZ-API-003",),
)
async def openapi(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the OpenAPI 3.1 document."""
    return Answer(200, (JSON_TYPE,), call.services.documents.openapi)


@operation("GET", "/docs", tag=TAG, auth=Auth.PUBLIC, media="text/html", no_io=True, codes=("UZ-API-003",))
async def docs(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the reference as a page."""
    return Answer(200, HTML, call.services.documents.docs)


@operation(
    "GET", "/docs/errors", tag=TAG, auth=Auth.PUBLIC, media="text/html", no_io=True, codes=("UZ-API-003",)
)
async def docs_errors(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the table of codes; each has an anchor."""
    return Answer(200, HTML, call.services.documents.errors)
