"""How a person sends an agent's webhook a delivery by hand: with curl, or with the command that signs."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

BODY: Final = '{"event_id":"by-hand-1","type":"test","data":{"from":"a terminal"}}'
"""What any source may send that has no form of its own."""
BODIES: Final[Mapping[str, str]] = {
    "github": '{"action":"completed","workflow_run":{"id":1}}',
    "linear": '{"action":"create","type":"Issue","data":{"id":"1"}}',
}
EVENT_HEADER: Final[Mapping[str, str]] = {"github": "x-github-event"}
"""Sources that name the event in a header, and the header."""
BY_BODY: Final = frozenset({"github"})
"""Known sources that sign the body alone, in hex."""
OWN_SCHEMES: Final = frozenset({"slack", "linear", "stripe", "sentry", "svix", "standard-webhooks"})
"""Known sources that sign more than the body, or in another way: a command does it for them."""


class Sample(NamedTuple):
    """One webhook of an agent."""

    source: str
    url: str
    signed: bool
    """Whether the sender signs; else the address has the secret in it, which was shown once."""
    lines: str
    """What is typed in a terminal."""


def sample_of(agent: str, trigger: Mapping[str, Any], url: str) -> Sample:
    """How a delivery is sent to this trigger by hand.

    >>> trigger = {"source": "grafana", "signature": {"header": "x-sign", "prefix": "v1=", "ts_header": None}}
    >>> print(sample_of("doctor", trigger, "https://x.example/v1/webhooks/1").lines.splitlines()[1])
    sign=$(printf %s "$body" | openssl dgst -sha256 -hmac "$SECRET" | sed 's/^.* //')
    >>> sample_of("doctor", {"source": "stripe", "signature": {"header": "h"}}, "https://x.example").lines
    'sexton trigger stripe --agent doctor'
    """
    source, signature = str(trigger["source"]), trigger.get("signature")
    body = f"body='{BODIES.get(source, BODY)}'"
    if not signature:
        return Sample(source, url, signed=False, lines=f"{body}\n{_curl(url)}")
    header = signature.get("header")
    if source in OWN_SCHEMES or not header or signature.get("ts_header"):
        return Sample(source, url, signed=True, lines=f"sexton trigger {source} --agent {agent}")
    prefix = signature.get("prefix") or ""
    lines = [
        body,
        'sign=$(printf %s "$body" | openssl dgst -sha256 -hmac "$SECRET" | sed \'s/^.* //\')',
        _curl(url, f"{header}: {prefix}$sign", *_event(trigger, source)),
    ]
    return Sample(source, url, signed=True, lines="\n".join(lines))


def _event(trigger: Mapping[str, Any], source: str) -> list[str]:
    header = EVENT_HEADER.get(source)
    if header is None:
        return []
    named = str((trigger.get("events") or ["workflow_run"])[0]).partition(".")[0]
    return [f"{header}: {named}", f"{header.removesuffix('event')}delivery: by-hand-1"]


def _curl(url: str, *headers: str) -> str:
    told = "".join(f' -H "{header}"' for header in headers)
    return f"curl -H 'content-type: application/json'{told} -d \"$body\" '{url}'"
