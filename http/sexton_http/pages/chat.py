"""The page on which a person ends who has connected a chat."""

from typing import Final

from sexton_http.answers import Answer
from sexton_http.pages.layout import page, safe

_INSTALLED: Final = """<p class="good">Approval requests are shown in <strong>{channel}</strong> of
<strong>{team}</strong> from now on.</p>
<p>In a private channel the app has to be invited first: type <code>/invite</code> and its name there.</p>
<p><a href="/">To the overview</a></p>"""


def installed_page(team: str, channel: str, *headers: tuple[bytes, bytes]) -> Answer:
    body = safe(_INSTALLED, team=team or "the workspace", channel=channel or "the channel")
    return page("Slack is connected", body, headers=headers)
