"""What the owner of an agent can do about deliveries that are refused for a reason."""

from collections.abc import Mapping
from typing import Final

from sexton_actors.webhooks.model import Reason
from sexton_actors.zombie.rejections import ENCODED, NOT_ACTIVE, RATE_LIMITED, TOO_LARGE

_ADVICE: Final[Mapping[str, str]] = {
    Reason.SIGNATURE_MISMATCH: "Give the sender and the credential the same secret, then replay it.",
    Reason.SIGNATURE_MISSING: "Have the sender sign what it sends, or give it the address of its own source.",
    Reason.SIGNATURE_MALFORMED: "Compare the trigger's header and prefix with what the sender sends.",
    Reason.STALE_TIMESTAMP: "See to the sender's clock, or raise tolerance_seconds of the trigger.",
    Reason.CREDENTIAL_MISSING: "Keep the secret in the credential that the trigger names, then replay it; "
    "a source that does not sign needs the whole address with its secret.",
    "malformed_body": "Have the sender send the JSON of its source; `payload: raw` takes any object.",
    TOO_LARGE: "Have the sender send less than 1 MiB.",
    RATE_LIMITED: "Slow the sender down, or wait: the rate, the plan or the agent's queue is full.",
    NOT_ACTIVE: "Start the agent, then replay it.",
    ENCODED: "Have the sender send the body as it is, without a Content-Encoding.",
    "budget_exceeded": "Raise the agent's budget or wait for its next period, then replay it.",
    "event_not_listed": "Name the event in the trigger's `events` if it is to wake the agent; replay it.",
}


def advice_for(reason: str) -> str:
    """One sentence; nothing for a reason that nobody has to do anything about.

    >>> advice_for("not_active"), advice_for("ping")
    ('Start the agent, then replay it.', '')
    """
    return _ADVICE.get(reason, "")
