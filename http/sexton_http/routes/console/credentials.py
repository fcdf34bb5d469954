"""The page of credentials: their names and hosts. Their values are on no page."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody
from sexton_http.pages.console import console_operation, older_of, show_page
from sexton_http.pages.form_actions import act
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.credentials import CredentialList, CredentialQuery, list_credentials

HERE: Final = "credentials"
PAGE: Final = 100


@console_operation(HERE, HERE, "Credentials")
async def show_credentials(call: Call[NoBody, CredentialQuery], frame: Frame) -> Answer:
    """Show the names of the workspace's credentials, the hosts that they are for, and how they are used."""
    query = CredentialQuery(limit=call.query.limit or PAGE, cursor=call.query.cursor)
    listed: CredentialList = await act(call, frame.signed_in, list_credentials, query=query)
    older = older_of(call, frame, HERE, listed.next_cursor)
    return show_page(call, frame, "credentials", credentials=listed.items, older=older)
