"""Takes a webhook in: whose it is, whether it is genuine, whether the agent may be woken, what it says."""

from collections.abc import Sequence
from typing import Any, assert_never

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.authentication import Rejected, authenticate
from sexton_actors.webhooks.bodies import find_text
from sexton_actors.webhooks.normalisation import Challenge, Delivery, Malformed, Ping, listed, read
from sexton_actors.webhooks.trigger_secrets import resolve_multisig, resolve_segment, secrets_of, source_shown
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.rejections import NOT_ACTIVE, Rejections
from sexton_actors.zombie.wakeups import Waker
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
        secrets = await self._secrets(zombie, trigger)
        now = self._held.world.now_ms()
        verdict = authenticate(trigger, message.headers, message.body, secrets, now)
        if isinstance(verdict, Rejected):
            return self._refuse(verdict, trigger.source)
        if refusal := transitions.may_be_delivered_to(zombie, workspace_paused=self._held.workspace_paused):
            return self._rejections.refuse(refusal, NOT_ACTIVE, trigger.source)
        return await self._take(zombie, manifest, trigger, message)

    async def _secrets(self, zombie: Zombie, trigger: WebhookTrigger) -> Sequence[str]:
        if trigger.signature is None:
            return ()
        data = await self._held.world.secrets.open(zombie.workspace_id, trigger.signature.secret_ref)
        return () if data is None else secrets_of(data)

    async def _take(
        self, zombie: Zombie, manifest: Manifest, trigger: WebhookTrigger, message: m.Deliver
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
                waking = transitions.WakeUp(
                    actor=f"webhook:{trigger.source}",
                    event_type=found.event_type,
                    request=found.payload,
                    text=found.text,
                    dedup_key=found.dedup_key,
                    body_key=found.body_key,
                    source_event_id=found.source_event_id,
                    traceparent=message.traceparent,
                )
                return await self._waker.wake(zombie, manifest, waking, webhook=True)
            case _:
                assert_never(found)

    def _refuse(self, rejected: Rejected, source: str) -> Refusal:
        return self._rejections.refuse(Refusal(rejected.code, rejected.detail), rejected.reason, source)

    def turned_away(self, message: m.TurnedAway) -> None:
        """Show what was refused before it was looked at."""
        zombie, manifest = self._held.record, self._held.manifest
        if zombie is None or manifest is None:
            return
        shown = source_shown(manifest, zombie.url_secret_hashes, message.segment)
        self._rejections.show(message.reason, shown)
