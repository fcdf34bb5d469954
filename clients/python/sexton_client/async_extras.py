"""Methods of the asynchronous client that the document cannot describe."""

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec

from sexton_client.async_streams import AsyncStream
from sexton_client.errors import ConnectionFailed
from sexton_client.extras import Delivered
from sexton_client.generated import async_resources, models, operations
from sexton_client.long_waits import LongWait
from sexton_client.messages import JSON, Request, read
from sexton_client.signing import Delivery, sign


class AsyncEvents(async_resources.AsyncEvents):
    """What woke agents and what came of it."""

    async def wait(
        self, event_id: str, *, timeout_s: float | None = None, workspace_id: str | None = None
    ) -> models.WholeEvent:
        """Wait until the event has ended, also while the server restarts, and show it.

        Raises WaitedTooLong when it has not ended after ``timeout_s``; None waits for as long as it takes.
        """
        transport = self._transport
        wait = LongWait(event_id, timeout_s, transport.patience, now_s=time.monotonic())
        while True:
            wait_ms = wait.poll_ms(now_s=time.monotonic())
            try:
                found = await self.get(event_id, wait_ms=wait_ms, workspace_id=workspace_id)
            except ConnectionFailed as fault:
                wait.is_away(fault, now_s=time.monotonic())
                continue
            if found.ended:
                return found
            wait.has_not_ended(found.status, now_s=time.monotonic())

    async def stream(
        self,
        *,
        agent_id: str | None = None,
        filter: str | None = None,  # noqa: A002 - the word of the interface
        since: str | None = None,
        last_event_id: str | None = None,
        workspace_id: str | None = None,
    ) -> AsyncStream:
        """Follow one agent, or all of a workspace, over cuts and restarts, without a gap or a repeat.

        ``filter`` picks events of a workspace, in the language of filters; ``since`` (``15s``, ``2h``, or a
        time) lets an agent's stream begin with the end of its last event, if it ended since then. Without
        ``last_event_id`` a stream begins with what happens next.
        """
        if agent_id is None:
            return await self._transport.open_stream(
                operations.STREAM_WORKSPACE_EVENTS,
                path={"workspace_id": workspace_id},
                query={"q": filter},
                last_event_id=last_event_id,
            )
        return await self._transport.open_stream(
            operations.STREAM_EVENTS,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={"since": since},
            last_event_id=last_event_id,
        )


class AsyncWebhooks(async_resources.AsyncWebhooks):
    """Deliveries from other services."""

    async def send_test(
        self,
        url: str,
        *,
        source: str,
        secret: str,
        event_type: str,
        body: Mapping[str, Any] | bytes,
        at_s: int | None = None,
    ) -> Delivered:
        """Deliver ``body`` to an agent as ``source`` would: signed with ``secret``, without the token.

        ``url`` is one of an agent's ``webhook_urls``; ``event_type`` is what the source says in a header;
        ``at_s``, in Unix seconds, when it says that it signed. Raises ApiError with the reason where the
        delivery is refused.
        """
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        delivery = Delivery(
            secret, content, event_type, int(time.time()) if at_s is None else at_s, str(uuid4())
        )
        headers = {"content-type": JSON, **sign(source, delivery)}
        # The same delivery is known again by its id, or by its bytes.
        outcome = await self._transport.send(Request("POST", url, headers, content, repeatable=True), {})
        return read(outcome, Delivered, self._transport.base_url, now_s=time.time())
