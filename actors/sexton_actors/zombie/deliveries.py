"""Takes a webhook in: whose it is, whether it is genuine, whether the agent may be woken, what it says."""

from collections.abc import Sequence
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.authentication import Rejected, authenticate
from sexton_actors.webhooks.bodies import find_text
from sexton_actors.webhooks.kept_headers import sent_headers
from sexton_actors.webhooks.normalisation import Challenge, Delivery, Malformed, Ping, listed, read
from sexton_actors.webhooks.trigger_secrets import (
    resolve_hash,
    resolve_multisig,
    resolve_segment,
    secrets_of,
    source_shown,
)
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.rejections import NOT_ACTIVE, Rejections
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.decisions.sources import source_delivery
from sexton_storage.records.deliveries import DeliveryAddress, WebhookDelivery
from sexton_storage.records.sources import Source
from sexton_storage.records.zombies import Zombie, ZombieStatus

MALFORMED = "UZ-WH-002"


class Deliveries:
    """The order of the checks is the contract's: nothing in a body is believed before its signature is."""

    def __init__(self, held: HeldZombie, waker: Waker, rejections: Rejections) -> None:
        self._held = held
        self._waker = waker
        self._rejections = rejections

    def __repr__(self) -> str:
        return f"<Deliveries of {self._held!r}>"

    async def deliver(self, zombie: Zombie, manifest: Manifest, message: m.Deliver) -> Any:
        if zombie.status is ZombieStatus.KILLED:
            gone = Refusal("UZ-WH-004", "The agent was killed.", {"current_state": "killed"})
            shown = source_shown(manifest, zombie.url_secret_hashes, message.segment)
            return self._rejections.refuse(gone, NOT_ACTIVE, shown)
        if message.multisig:
            trigger = resolve_multisig(manifest, message.headers)
        else:
            trigger = resolve_segment(manifest, zombie.url_secret_hashes, message.segment)
        if isinstance(trigger, Rejected):
            shown = source_shown(manifest, zombie.url_secret_hashes, message.segment)
            return self._refuse(trigger, shown)
        refusal = await self._verify(zombie, trigger, message, self._held.world.now_ms())
        return refusal or await self._take(zombie, manifest, trigger, message)

    async def deliver_again(self, zombie: Zombie, manifest: Manifest, again: m.Redeliver) -> Any:
        """The same checks, for a delivery that was kept: whoever sent it is judged by when it came."""
        delivery, hashes = again.delivery, zombie.url_secret_hashes
        known = delivery.event_id or await self._event_of(delivery)
        if known is not None:
            return m.AlreadyAccepted(known)
        headers = sent_headers(delivery.headers)
        message = m.Deliver(None, headers, again.body, traceparent=again.traceparent)
        if delivery.segment_hash is not None:
            trigger = resolve_hash(manifest, hashes, delivery.segment_hash.hex())
        elif delivery.address is DeliveryAddress.SEVERAL:
            trigger = resolve_multisig(manifest, headers)
        else:
            trigger = resolve_segment(manifest, hashes, None)
        if isinstance(trigger, Rejected):
            return self._refuse(trigger, delivery.source)
        refusal = await self._verify(zombie, trigger, message, delivery.at)
        return refusal or await self._take(zombie, manifest, trigger, message, again)

    async def _event_of(self, delivery: WebhookDelivery) -> UUID | None:
        # Whoever replayed it before may have died before that could be noted.
        made = await self._held.world.storage.jobs.known((delivery.id,))
        return delivery.id if made else None

    async def _verify(
        self, zombie: Zombie, trigger: WebhookTrigger, message: m.Deliver, now: int
    ) -> Refusal | None:
        secrets = await self._secrets(zombie, trigger)
        verdict = authenticate(trigger, message.headers, message.body, secrets, now)
        if isinstance(verdict, Rejected):
            return self._refuse(verdict, trigger.source)
        if refusal := transitions.may_be_delivered_to(zombie, workspace_paused=self._held.workspace_paused):
            return self._rejections.refuse(refusal, NOT_ACTIVE, trigger.source)
        return None

    async def _secrets(self, zombie: Zombie, trigger: WebhookTrigger) -> Sequence[str]:
        if trigger.signature is None:
            return ()
        data = await self._held.world.secrets.open(zombie.workspace_id, trigger.signature.secret_ref)
        return () if data is None else secrets_of(data)

    async def _take(
        self,
        zombie: Zombie,
        manifest: Manifest,
        trigger: WebhookTrigger,
        message: m.Deliver,
        again: m.Redeliver | None = None,
    ) -> Any:
        text = await find_text(message.body)
        if isinstance(text, Malformed):
            return self._refuse(Rejected("malformed_body", MALFORMED, text.detail), trigger.source)
        found = read(trigger, message.headers, message.body, text)
        match found:
            case Malformed():
                return self._refuse(Rejected("malformed_body", MALFORMED, found.detail), trigger.source)
            case Ping():
                return m.Ignored("ping")
            case Challenge():
                return m.Challenge(found.challenge)
            case Delivery():
                if not listed(trigger, found.event_type):
                    # The list may have been another when this one first came.
                    first = await self._waker.seen(found.dedup_key, found.body_key)
                    return m.Ignored("event_not_listed") if first is None else m.AlreadyAccepted(first)
                actor = f"webhook:{trigger.source}"
                kept = None if again is None else again.delivery
                if kept is not None and (first := await self._sent_again(kept, actor, found)) is not None:
                    return m.AlreadyAccepted(first)
                waking = transitions.WakeUp(
                    actor=actor,
                    event_type=found.event_type,
                    request=found.payload,
                    text=found.text,
                    dedup_key=found.dedup_key,
                    body_key=found.body_key,
                    source_event_id=found.source_event_id,
                    traceparent=message.traceparent,
                    event_id=None if kept is None else kept.id,
                    source=_source(kept, message.body),
                    audit=None if again is None else again.audit,
                )
                return await self._waker.wake(zombie, manifest, waking, webhook=True)
            case _:
                assert_never(found)

    async def _sent_again(self, kept: WebhookDelivery, actor: str, found: Delivery) -> UUID | None:
        """The event of the same delivery that its sender has sent again since, however long ago."""
        if found.source_event_id is None:
            return None
        store = self._held.world.storage.deliveries
        return await store.event_of(kept.zombie_id, actor, found.source_event_id, kept.at)

    def _refuse(self, rejected: Rejected, source: str) -> Refusal:
        return self._rejections.refuse(Refusal(rejected.code, rejected.detail), rejected.reason, source)

    def turned_away(self, message: m.TurnedAway) -> None:
        """Show what was refused before it was looked at."""
        zombie, manifest = self._held.record, self._held.manifest
        if zombie is None or manifest is None:
            return
        shown = source_shown(manifest, zombie.url_secret_hashes, message.segment)
        self._rejections.show(message.reason, shown)


def _source(kept: WebhookDelivery | None, body: bytes) -> Source | None:
    """What came just now, or has no body, is taken from nothing that could be erased meanwhile."""
    return source_delivery(kept.id, body) if kept is not None and body else None
