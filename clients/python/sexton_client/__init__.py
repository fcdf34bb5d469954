"""The Python client of Sexton: events, agents, approvals and all else that its HTTP interface has."""

from sexton_client.async_client import AsyncSexton
from sexton_client.async_streams import AsyncStream
from sexton_client.client import Sexton
from sexton_client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Gone,
    NotFound,
    NotUnderstood,
    PaymentRequired,
    ServerError,
    SextonError,
    TooManyRequests,
    Unauthorized,
    WaitedTooLong,
)
from sexton_client.extras import Delivered
from sexton_client.frames import Frame
from sexton_client.generated import models
from sexton_client.generated.codes import ErrorCode
from sexton_client.retries import Patience
from sexton_client.signing import Delivery, sign, sign_with_header
from sexton_client.streams import Stream
from sexton_client.version import VERSION

__all__ = [
    "VERSION",
    "ApiError",
    "AsyncSexton",
    "AsyncStream",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "Delivered",
    "Delivery",
    "ErrorCode",
    "Forbidden",
    "Frame",
    "Gone",
    "NotFound",
    "NotUnderstood",
    "Patience",
    "PaymentRequired",
    "ServerError",
    "Sexton",
    "SextonError",
    "Stream",
    "TooManyRequests",
    "Unauthorized",
    "WaitedTooLong",
    "models",
    "sign",
    "sign_with_header",
]
