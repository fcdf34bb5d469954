"""Keeps the secrets that stand in addresses out of the log."""

import re

_SECRET = re.compile(r"(?<=/)zwh_[^/]*|(?<=/)[^/]{24,}")
"""The secret of a webhook's address, and any other part that is long enough to be one."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?::[a-z_-]+)?")


def masked(path: str) -> str:
    """The path as it may be logged.

    >>> masked("/v1/webhooks/018f/zwh_abc"), masked("/v1/webhooks/018f/github")
    ('/v1/webhooks/018f/...', '/v1/webhooks/018f/github')
    >>> masked("/auth/sign-in/" + 32 * "0a"), masked("/v1/fleet/runners/018f0a1b-0000-7000-8000-000000000001")
    ('/auth/sign-in/...', '/v1/fleet/runners/018f0a1b-0000-7000-8000-000000000001')
    """
    return _SECRET.sub(lambda found: found[0] if _UUID.fullmatch(found[0]) else "...", path)
