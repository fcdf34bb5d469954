"""Types of ASGI, as far as connections need them."""

from collections.abc import Awaitable, Callable
from typing import Any

App = Callable[..., Awaitable[None]]
Header = tuple[bytes, bytes]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
