"""The page of the audit log: who changed what, when and from where."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation, older_of, refused_page, show_page
from sexton_http.pages.form_actions import act, may
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.audit import AuditPage, AuditQuery, list_audit

HERE: Final = "audit"
REFUSED: Final = "The audit log names people and addresses, so only admins of the tenant read it."


class AuditSearch(Query):
    """What the form above the log sends; an empty field chooses nothing."""

    actor: str = ""
    action: str = ""
    target: str = ""
    cursor: Cursor | None = None


@console_operation(HERE, HERE, "Audit log")
async def show_audit(call: Call[NoBody, AuditSearch], frame: Frame) -> Answer:
    """Show who changed what in the tenant, newest first, to its admins."""
    if not may(frame.signed_in, list_audit):
        return refused_page(frame, REFUSED, status=403)
    search = call.query
    asked = AuditQuery(
        actor=search.actor.strip() or None,
        action=search.action.strip() or None,
        target=search.target.strip() or None,
        cursor=search.cursor,
    )
    page: AuditPage = await act(call, frame.signed_in, list_audit, query=asked)
    older = older_of(call, frame, HERE, page.next_cursor)
    return show_page(call, frame, "audit", lines=page.items, search=search, older=older)
