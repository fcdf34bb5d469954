"""Types of ASGI, as far as connections need them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

App = Callable[..., Awaitable[None]]
Header = tuple[bytes, bytes]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
RESERVED: Final = "sexton.reserved"
"""An extension of the scope: the server is full, and this connection may only ask after its health."""
