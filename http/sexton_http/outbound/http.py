"""Asks servers of others: bounded in time and size, without following them anywhere."""

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec
import trio

from sexton_http.outbound.errors import Unreachable

ANSWER_S: Final = 5.0
MAX_BYTES: Final = 256 * 1024
OK: Final = 200


def is_safe(url: str) -> bool:
    """HTTPS, or plain HTTP on this machine.

    >>> (
    ...     is_safe("https://id.example.com/x"),
    ...     is_safe("http://127.0.0.1:1/x"),
    ...     is_safe("http://id.example.com/x"),
    ... )
    (True, True, False)
    """
    parts = urlsplit(url)
    if parts.scheme == "https":
        return bool(parts.hostname)
    return parts.scheme == "http" and _is_here(parts.hostname or "")


def _is_here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Reply(msgspec.Struct, frozen=True):
    """One answer, read to its end; names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Elsewhere:
    """JSON from other servers. Raises Unreachable for all that is not a JSON object with status 200."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        return await self._json("GET", url, headers=dict(headers or {}))

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        return await self._json("POST", url, data=dict(form), headers=dict(headers or {}))

    async def ask(self, method: str, url: str, **rest: Any) -> Reply:
        """Whatever it answers, with any status. Raises Unreachable when it does not."""
        if not is_safe(url):
            raise Unreachable(f"{url} is neither HTTPS nor on this machine")
        headers = {"accept": "application/json", "accept-encoding": "identity", **rest.pop("headers", {})}
        body, status, told = bytearray(), 0, dict[str, str]()
        with trio.move_on_after(ANSWER_S) as deadline:
            try:
                async with self._client.stream(
                    method, url, headers=headers, follow_redirects=False, **rest
                ) as answer:
                    async for chunk in answer.aiter_bytes():
                        body += chunk
                        if len(body) > MAX_BYTES:
                            # Raising here would leave the client's generators to the collector.
                            deadline.cancel()
                    status, told = answer.status_code, {k.lower(): v for k, v in answer.headers.items()}
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as fault:
                raise Unreachable(f"{url}: {fault!r}") from fault
        if len(body) > MAX_BYTES:
            raise Unreachable(f"{url} answered with more than {MAX_BYTES} bytes")
        if deadline.cancelled_caught:
            raise Unreachable(f"{url} did not answer within {ANSWER_S:.0f} s")
        return Reply(status, told, bytes(body))

    async def _json(self, method: str, url: str, **rest: Any) -> dict[str, Any]:
        reply = await self.ask(method, url, **rest)
        if reply.status != OK:
            raise Unreachable(f"{url} answered {reply.status}")
        try:
            return msgspec.json.decode(reply.body, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as fault:
            raise Unreachable(f"{url} did not answer with a JSON object") from fault
