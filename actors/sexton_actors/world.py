"""What the actors are given: the stores, the vault's keeper, the prices, ids and randomness."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from sexton_actors.catalogue import Catalogue
from sexton_actors.chat.platform import ChatPlatform
from sexton_actors.secrets import Secrets
from sexton_storage.stores import Storage


@dataclass(frozen=True, slots=True)
class World:
    """One for a server, made in the composition root; nothing in it is a global."""

    storage: Storage
    secrets: Secrets
    catalogue: Catalogue
    new_id: Callable[[], UUID]
    new_token: Callable[[int], str]
    """Random bytes, so many, as lower-case hex."""
    chat: ChatPlatform | None = None
    """Where approval requests are shown too; None: nowhere, they wait in the inbox."""

    def now_ms(self) -> int:
        """The database's time."""
        return self.storage.clock.now_ms()
