"""Types of ASGI, as far as connections need them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

App = Callable[..., Awaitable[None]]
Header = tuple[bytes, bytes]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
TakeBody = Callable[[], bytes | None]
WHOLE_BODY: Final = "sexton.whole_body"
"""In the scope, a ``TakeBody``: gives the whole body, once, if all of it is here and none was received."""
WHOLE_ANSWER: Final = "sexton.whole_answer"
"""In the scope, a function that sends an ``Answer``, once, in place of the messages of ASGI."""
RESERVED: Final = "sexton.reserved"
"""An extension of the scope: the server is full, and this connection may only ask after its health."""
