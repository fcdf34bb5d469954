"""Says to which hosts each lent credential may go."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

KNOWN_HOSTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "github": ("api.github.com", "uploads.github.com", "github.com"),
        "gitlab": ("gitlab.com",),
        "slack": ("slack.com", "*.slack.com"),
        "linear": ("api.linear.app",),
        "jira": ("*.atlassian.net", "api.atlassian.com"),
        "notion": ("api.notion.com",),
        "pagerduty": ("api.pagerduty.com", "events.pagerduty.com"),
        "sentry": ("sentry.io", "*.sentry.io"),
        "stripe": ("api.stripe.com",),
    }
)
"""Where the credential of a well-known service belongs, by its name, when it names no hosts itself."""


def secret_hosts(name: str, named: Sequence[str], allow: Sequence[str]) -> tuple[str, ...]:
    """Those that its owner named; else what can be the only meaning; else none at all.

    Of an agent that may reach one host only, that is the meaning. None: it is refused towards any host, since
    a secret that may go to several goes to the wrong one in the end.

    >>> secret_hosts("deploy", ["ci.example.com"], ["a.example.com", "ci.example.com"])
    ('ci.example.com',)
    >>> secret_hosts("deploy", [], ["ci.example.com"]), secret_hosts("deploy", [], ["a.com", "b.com"])
    (('ci.example.com',), ())
    >>> secret_hosts("github", [], ["a.com", "api.github.com"])
    ('api.github.com', 'uploads.github.com', 'github.com')
    """
    if named:
        return tuple(named)
    return tuple(allow) if len(allow) == 1 else KNOWN_HOSTS.get(name.lower(), ())
