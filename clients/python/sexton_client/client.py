"""The client for programs without an event loop."""

import os
from types import TracebackType
from typing import Self

import httpx2

from sexton_client.extras import Events, Webhooks
from sexton_client.generated.resources import Groups
from sexton_client.messages import from_environment
from sexton_client.retries import Patience
from sexton_client.transport import Transport


class Sexton(Groups):
    """One server, as one caller. Threads may share it; ``close`` it, or use it as a context manager.

    Each group of calls is an attribute: ``client.agents``, ``client.events``, ``client.approvals``.
    """

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        workspace: str | None = None,
        patience: Patience | None = None,
        http: httpx2.Client | None = None,
    ) -> None:
        """``workspace``: the id or name of the one that calls are about; None: the only one there is.

        ``http``: whose connections are used, and which then is not closed here; give it for a proxy, or for
        certificates of your own. Raises SextonError for what is no address, or no token.
        """
        self._transport = Transport(base_url, token, workspace=workspace, patience=patience, http=http)
        super().__init__(self._transport)
        self.events = Events(self._transport)
        self.webhooks = Webhooks(self._transport)

    @classmethod
    def from_environment(cls) -> Self:
        """As ``SEXTON_BASE_URL``, ``SEXTON_TOKEN`` and ``SEXTON_WORKSPACE`` say. Raises SextonError."""
        base_url, token, workspace = from_environment(os.environ)
        return cls(base_url, token, workspace=workspace)

    def __repr__(self) -> str:
        return f"<Sexton at {self._transport.base_url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def workspace_id(self) -> str:
        """The workspace that calls are about. Raises SextonError where there are several."""
        return self._transport.workspace_id

    def close(self) -> None:
        """Give the connections back."""
        self._transport.close()
