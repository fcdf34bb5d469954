"""Makes rows of the deliveries that were noted: which trigger an address meant, and nothing secret in it."""

from collections.abc import Mapping
from uuid import UUID

from sexton_actors.manifest.model import Manifest, WebhookTrigger, from_json
from sexton_actors.webhooks.delivery_log import Arrival, Noted
from sexton_actors.webhooks.kept_headers import kept_headers
from sexton_actors.webhooks.known_sources import source_of
from sexton_actors.webhooks.model import Rejected
from sexton_actors.webhooks.trigger_secrets import hash_url_secret, resolve_multisig, trigger_meant
from sexton_storage.records.deliveries import (
    DeliveryAddress,
    KeptDelivery,
    RefusalCount,
    WebhookDelivery,
)
from sexton_storage.records.zombies import Zombie

DETAIL_CHARS = 500


def delivery_of(arrival: Arrival, zombie: Zombie, new_id: UUID) -> KeptDelivery:
    """The row of a delivery to this agent. Its body is kept, unless an event has it."""
    manifest = from_json(zombie.compiled)
    address, trigger = _meant(manifest, zombie.url_secret_hashes, arrival)
    body = arrival.body if arrival.event_id is None else None
    segment = arrival.segment
    return KeptDelivery(
        WebhookDelivery(
            id=new_id,
            zombie_id=zombie.id,
            workspace_id=zombie.workspace_id,
            tenant_id=zombie.tenant_id,
            at=arrival.at,
            address=address,
            source="" if trigger is None else trigger.source,
            segment_hash=None if segment is None else bytes.fromhex(hash_url_secret(segment)),
            verdict=arrival.verdict,
            code=arrival.code,
            reason=arrival.reason,
            detail=arrival.detail[:DETAIL_CHARS],
            event_id=arrival.event_id,
            headers=kept_headers(arrival.headers, () if trigger is None else signed_by(trigger)),
            size=arrival.size,
            body_bytes=len(body or b""),
        ),
        body,
    )


def counts_of(noted: Noted) -> list[RefusalCount]:
    return [
        RefusalCount(
            zombie_id=zombie_id,
            hour=hour,
            workspace_id=tally.workspace_id,
            refused=tally.refused,
            unkept=tally.unkept,
            last_at=tally.last_at,
            last_code=tally.last_code,
            last_reason=tally.last_reason,
        )
        for (zombie_id, hour), tally in noted.tallies.items()
    ]


def signed_by(trigger: WebhookTrigger) -> tuple[str, ...]:
    """The headers that a trigger's signature and its time stand in."""
    if trigger.signature is None:
        return ()
    source = source_of(trigger.source)
    names = (trigger.signature.header or source.header, trigger.signature.ts_header or source.ts_header)
    return tuple(name for name in names if name is not None)


def _meant(
    manifest: Manifest, hashes: Mapping[str, str], arrival: Arrival
) -> tuple[DeliveryAddress, WebhookTrigger | None]:
    if arrival.multisig:
        found = resolve_multisig(manifest, arrival.headers)
        return DeliveryAddress.SEVERAL, None if isinstance(found, Rejected) else found
    trigger = trigger_meant(manifest, hashes, arrival.segment)
    if arrival.segment is None:
        return DeliveryAddress.FIRST, trigger
    if trigger is None:
        return DeliveryAddress.UNKNOWN, None
    named = trigger.source == arrival.segment
    return DeliveryAddress.SOURCE if named else DeliveryAddress.SECRET, trigger
