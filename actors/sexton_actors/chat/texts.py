"""The text of a message in a chat: nothing in it commands the platform, and its length is bounded."""

from collections.abc import Mapping
from typing import Any

from sexton_actors.ports.chat import Notice

MAX_TEXT_CHARS = 2_900
"""Slack takes 3,000 in one section."""


def message_of(text: str) -> Notice:
    """A message of one paragraph, without buttons."""
    told = bounded(text, MAX_TEXT_CHARS)
    return Notice(told, (section(told),))


def section(text: str) -> Mapping[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def plain(text: str) -> str:
    """Nothing in it is a command to the platform.

    >>> plain("<!channel> & <@U1>")
    '&lt;!channel&gt; &amp; &lt;@U1&gt;'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def code(text: str) -> str:
    return plain(text).replace("`", "'")


def bounded(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
