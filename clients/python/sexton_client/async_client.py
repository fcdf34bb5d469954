"""The client for programs on asyncio or trio."""

import os
from types import TracebackType
from typing import Self

import httpx2

from sexton_client.async_extras import AsyncEvents, AsyncWebhooks
from sexton_client.async_transport import AsyncTransport
from sexton_client.generated.async_resources import AsyncGroups
from sexton_client.messages import from_environment
from sexton_client.retries import Patience


class AsyncSexton(AsyncGroups):
    """One server, as one caller, for the tasks of one loop; ``aclose`` it, or use it as a context manager.

    Each group of calls is an attribute: ``client.agents``, ``client.events``, ``client.approvals``.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        workspace: str | None = None,
        patience: Patience | None = None,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        """``workspace``: the id or name of the one that calls are about; None: the only one there is.

        ``http``: whose connections are used, and which then is not closed here; give it for a proxy, or for
        certificates of your own. Raises SextonError for what is no address, or no token.
        """
        self._transport = AsyncTransport(base_url, token, workspace=workspace, patience=patience, http=http)
        super().__init__(self._transport)
        self.events = AsyncEvents(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)

    @classmethod
    def from_environment(cls) -> Self:
        """As ``SEXTON_BASE_URL``, ``SEXTON_TOKEN`` and ``SEXTON_WORKSPACE`` say. Raises SextonError."""
        base_url, token, workspace = from_environment(os.environ)
        return cls(base_url, token, workspace=workspace)

    def __repr__(self) -> str:
        return f"<AsyncSexton at {self._transport.base_url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def workspace_id(self) -> str:
        """The workspace that calls are about. Raises SextonError where there are several."""
        return await self._transport.workspace_id()

    async def aclose(self) -> None:
        """Give the connections back."""
        await self._transport.aclose()
