"""The pages of API keys: what the interface does, in forms that need no script."""

from datetime import UTC, datetime, timedelta
from typing import Final

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body, KeyMade, KeyPage
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.identity.principals import SignedIn, is_enough
from sexton_http.pages.form_actions import FormDecoder, act, form_operation, may, page_operation
from sexton_http.pages.forms import Trouble, sent_fields, trouble_of
from sexton_http.pages.keys import FIELDS, KEY_NAME, keys_page, made_page
from sexton_http.pages.layout import see
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

HOME: Final = "/keys"
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


@page_operation(HOME)
async def show_keys(call: Call[NoBody, KeyQuery], who: SignedIn) -> Answer:
    """Show the tenant's keys, without their values, and a form for another."""
    return await _page(call, who, call.query)


async def _refused(call: Call[NoBody, NoQuery], problem: Problem) -> Answer:
    """A key may be gone or on another page of the list, so it is said above all of them."""
    at = KEY_NAME.name if problem.code == "UZ-APIKEY-005" else ""
    trouble = trouble_of(problem, call.request_id, FIELDS, at=at)
    return await _page(call, call.signed_in, KeyQuery(), trouble)


@form_operation(HOME, _refused, statuses=NOT_MADE, form=KeyForm, status=CREATED)
async def submit_key(call: Call[NoBody, NoQuery]) -> Answer:
    """Mint a key and show it, this once; the same form sent again finds its name taken."""
    who = call.signed_in
    made: KeyMade = await act(call, who, create_api_key, body=_new_key(_FORM.decode(call)))
    return made_page(who, made)


@form_operation("/keys/{key_id}/revoke", _refused, statuses=NOT_ENDED)
async def submit_revocation(call: Call[NoBody, NoQuery]) -> Answer:
    """Revoke a key and go back to the list."""
    await act(call, call.signed_in, change_api_key, body=KeyPatch(active=False))
    return see(HOME)


@form_operation("/keys/{key_id}/delete", _refused, statuses=NOT_ENDED)
async def submit_deletion(call: Call[NoBody, NoQuery]) -> Answer:
    """Delete a key that was revoked, and go back to the list."""
    await act(call, call.signed_in, delete_api_key)
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
