"""The pages of API keys: what the interface does, in forms that need no script."""

from datetime import UTC, datetime, timedelta
from typing import Final

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body, KeyMade, KeyPage
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.identity.principals import SignedIn, is_enough
from sexton_http.pages.form_actions import MAX_FORM_BYTES, FormDecoder, act, may
from sexton_http.pages.forms import Trouble, sent_fields, trouble_of
from sexton_http.pages.keys import FIELDS, KEY_NAME, keys_page, made_page
from sexton_http.pages.layout import see
from sexton_http.pages.people import sign_in_page
from sexton_http.routes.api_keys import (
    Description,
    KeyName,
    KeyPatch,
    KeyQuery,
    NewKey,
    change_api_key,
    create_api_key,
    delete_api_key,
    list_api_keys,
)
from sexton_storage.records.users import Role

TAG = "Browser"
HOME: Final = "/keys"
SEE_OTHER: Final = 303
CREATED: Final = 201
# With these the page comes back and says why.
NOT_MADE: Final = (400, 403, 409)
NOT_ENDED: Final = (403, 404, 409)
DAY: Final = timedelta(days=1)


class KeyForm(Body):
    """What the form of a new key sends."""

    key_name: KeyName
    description: Description = ""
    role: Role = Role.OPERATOR
    expires_at: str = ""
    """The last day on which the key works, in UTC, as in `2027-01-31`; empty: it has none."""


_FORM: Final = FormDecoder(KeyForm)
_MAKERS: Final = create_api_key.role or Role.USER


@operation("GET", HOME, tag=TAG, auth=Auth.PUBLIC, media="text/html")
async def show_keys(call: Call[NoBody, KeyQuery]) -> Answer:
    """Show the tenant's keys, without their values, and a form for another."""
    who = await call.services.browsers.find(call.head)
    if who is None:
        return sign_in_page(call.services.ways, f"?next={HOME}")
    return await _page(call, who, call.query)


@operation(
    "POST",
    HOME,
    tag=TAG,
    auth=Auth.BROWSER,
    media="text/html",
    status=CREATED,
    extra_statuses=NOT_MADE,
    codes=("UZ-REQ-001", "UZ-REQ-002", "UZ-REQ-005"),
    max_body=MAX_FORM_BYTES,
    form=KeyForm,
)
async def submit_key(call: Call[NoBody, NoQuery]) -> Answer:
    """Mint a key and show it, this once; the same form sent again finds its name taken."""
    who = call.signed_in
    try:
        made: KeyMade = await act(call, who, create_api_key, body=_new_key(_FORM.decode(call)))
    except Problem as problem:
        at = KEY_NAME.name if problem.code == "UZ-APIKEY-005" else ""
        return await _page(call, who, KeyQuery(), trouble_of(problem, call.request_id, FIELDS, at=at))
    return made_page(who, made)


@operation(
    "POST",
    "/keys/{key_id}/revoke",
    tag=TAG,
    auth=Auth.BROWSER,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=NOT_ENDED,
)
async def submit_revocation(call: Call[NoBody, NoQuery]) -> Answer:
    """Revoke a key and go back to the list."""
    try:
        await act(call, call.signed_in, change_api_key, body=KeyPatch(active=False))
    except Problem as problem:
        return await _refused(call, problem)
    return see(HOME)


@operation(
    "POST",
    "/keys/{key_id}/delete",
    tag=TAG,
    auth=Auth.BROWSER,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=NOT_ENDED,
)
async def submit_deletion(call: Call[NoBody, NoQuery]) -> Answer:
    """Delete a key that was revoked, and go back to the list."""
    try:
        await act(call, call.signed_in, delete_api_key)
    except Problem as problem:
        return await _refused(call, problem)
    return see(HOME)


def _new_key(form: KeyForm) -> NewKey:
    """As the interface takes it. Raises Problem UZ-REQ-001."""
    until = end_of_day(form.expires_at) if form.expires_at else None
    return NewKey(form.key_name, form.description, form.role, expires_at=until)


def end_of_day(day: str) -> int:
    """When a day is over, in ms. Raises Problem UZ-REQ-001.

    >>> end_of_day("1970-01-01")
    86400000
    """
    try:
        begins = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
        return round((begins + DAY).timestamp() * 1000)
    except (ValueError, OverflowError) as fault:
        raise Problem("UZ-REQ-001", "expires_at: no day", facts={"parameter": "expires_at"}) from fault


async def _refused(call: Call[NoBody, NoQuery], problem: Problem) -> Answer:
    """The key may be gone or on another page of the list, so it is said above all of them."""
    trouble = trouble_of(problem, call.request_id, FIELDS)
    return await _page(call, call.signed_in, KeyQuery(), trouble)


async def _page(
    call: Call[NoBody, KeyQuery] | Call[NoBody, NoQuery],
    who: SignedIn,
    query: KeyQuery,
    trouble: Trouble | None = None,
) -> Answer:
    keys: KeyPage = await act(call, who, list_api_keys, query=query)
    roles = [role.value for role in Role if is_enough(who.user.role, role)]
    return keys_page(
        who,
        keys,
        roles=roles if may(who, create_api_key) else (),
        needed=_MAKERS.value,
        typed={"role": Role.OPERATOR.value, **sent_fields(call.raw)},
        trouble=trouble,
    )
