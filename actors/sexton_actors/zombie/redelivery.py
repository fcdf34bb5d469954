"""What becomes of a kept delivery when it is replayed; docs/reference/states.md has its states."""

from msgspec.structs import replace

from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Challenge, Ignored
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.delivery_rows import DETAIL_CHARS
from sexton_storage.records.deliveries import DeliveryVerdict, WebhookDelivery

Outcome = Accepted | AlreadyAccepted | Ignored | Challenge | Refusal
REASON_PREFIX = "webhook_rejected: "


def replayed(delivery: WebhookDelivery, outcome: Outcome, by: str, now: int) -> WebhookDelivery:
    """The delivery after a replay that ended so; one with an event stays as it is.

    >>> from uuid import UUID
    >>> from sexton_storage.records.deliveries import DeliveryAddress
    >>> it, refused = UUID(int=1), DeliveryVerdict.REFUSED
    >>> kept = WebhookDelivery(
    ...     it,
    ...     it,
    ...     it,
    ...     it,
    ...     5,
    ...     DeliveryAddress.FIRST,
    ...     "github",
    ...     None,
    ...     refused,
    ...     "UZ-WH-010",
    ...     "signature_mismatch",
    ...     "it does not fit",
    ...     None,
    ...     {},
    ...     2,
    ...     2,
    ... )
    >>> mended = replayed(kept, Accepted(it), "user:1", 9)
    >>> str(mended.verdict), mended.event_id == it, mended.code, mended.replays
    ('replayed', True, None, 1)
    >>> replayed(mended, Accepted(UUID(int=2)), "user:1", 9) == mended
    True
    >>> again = replayed(kept, Refusal("UZ-WH-003", "The agent is stopped."), "user:1", 9)
    >>> str(again.verdict), again.code, again.detail
    ('refused', 'UZ-WH-003', 'The agent is stopped.')
    """
    if delivery.event_id is not None:
        return delivery
    tried = replace(delivery, replays=delivery.replays + 1, replayed_at=now, replayed_by=by)
    match outcome:
        case Accepted(event_id=event_id) | AlreadyAccepted(event_id=event_id):
            return replace(
                tried,
                verdict=DeliveryVerdict.REPLAYED,
                event_id=event_id,
                code=None,
                reason="",
                detail="",
            )
        case Ignored(reason=reason):
            return replace(tried, verdict=DeliveryVerdict.IGNORED, code=None, reason=reason, detail="")
        case Challenge():
            return replace(tried, verdict=DeliveryVerdict.CHALLENGE, code=None, reason="", detail="")
        case Refusal() as refusal:
            return replace(
                tried,
                verdict=DeliveryVerdict.REFUSED,
                code=refusal.code,
                reason=reason_of(refusal),
                detail=refusal.detail[:DETAIL_CHARS],
            )


def reason_of(refusal: Refusal) -> str:
    """The reason in one word, as the stream shows it.

    >>> reason_of(Refusal("UZ-WH-010", "no", {"reason": "webhook_rejected: signature_mismatch"}))
    'signature_mismatch'
    """
    return str(refusal.facts.get("reason", "")).removeprefix(REASON_PREFIX)
