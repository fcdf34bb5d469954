"""What routes share that give an agent other files."""

from collections.abc import Mapping
from typing import Final

import msgspec

from sexton_actors.zombie.messages import Configured
from sexton_http.answers import Problem
from sexton_http.context import HttpContext

MARKDOWN_CHARS: Final = 64 * 1024
MARKDOWN_BYTES: Final = 64 * 1024

NEW_FILES: Final = ("UZ-ZMB-006", "UZ-ZMB-008", "UZ-ZMB-011", "UZ-APPROVAL-001", "UZ-APPROVAL-005")
"""What is told of two files that make no agent, or one whose name is taken."""
NewUrls = dict[str, str] | msgspec.UnsetType
"""Trigger source to its address; one whose secret was shown before is left out."""


def bounded(field: str, text: str | None) -> None:
    """Bounds are in bytes; the declaration can only count characters. Raises Problem UZ-REQ-001."""
    if text is not None and len(text.encode()) > MARKDOWN_BYTES:
        raise Problem("UZ-REQ-001", f"/{field}: over {MARKDOWN_BYTES} bytes", facts={"pointer": f"/{field}"})


def urls(ctx: HttpContext, paths: Mapping[str, str]) -> dict[str, str]:
    return {source: ctx.settings.base_url + path for source, path in paths.items()}


def new_urls(ctx: HttpContext, configured: Configured | None) -> NewUrls:
    """The addresses, where some have a secret that is shown in this answer only; else nothing."""
    if configured is None or configured.webhook_paths is None or not configured.new_secrets:
        return msgspec.UNSET
    return urls(ctx, configured.webhook_paths)
