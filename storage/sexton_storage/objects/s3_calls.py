"""Asks an S3 store over HTTP: signed, bounded in time and size, and again where that may help."""

import hashlib
import importlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import quote

import httpx2
import msgspec
import trio

from sexton_storage.objects.s3_address import S3Address
from sexton_storage.objects.s3_xml import said
from sexton_storage.objects.store import ObjectMissing, ObjectStoreFault

CONNECT_S: Final = 5.0
CALL_S: Final = 60.0
"""For one call with its whole body and answer; a part of 8 MiB needs 140 kB a second."""
PIECE_S: Final = 20.0
"""For the next piece of an object that is read."""
ANSWER_BYTES: Final = 4 << 20
WAITS_S: Final = (0.2, 1.0)
"""Before it is tried again, and once more."""
AGAIN: Final = frozenset({429, 500, 502, 503, 504})
NOTHING: Final = hashlib.sha256().hexdigest()
_SIGNER: Final = "sexton_storage.objects.s3_signing"

Query = Sequence[tuple[str, str]]


class Sign(Protocol):
    """Gives the headers with which to send a request whose body has this SHA-256; may wait."""

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], sha256: str
    ) -> Mapping[str, str]: ...


class S3Answer(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]
    body: bytes


class SignerMissing(ObjectStoreFault):
    """The package that signs is not installed."""


async def load_signer(region: str) -> Sign:
    """Give what signs for a region. Raises SignerMissing."""
    try:
        # It takes a while to import, on a thread, and only where a store is used.
        module = await trio.to_thread.run_sync(importlib.import_module, _SIGNER)
    except ImportError as fault:
        raise SignerMissing(
            f"the package 'botocore' cannot be imported ({fault}): install sexton with the extra s3"
        ) from fault
    sign: Sign = module.AwsSigner(region).sign
    return sign


class S3Calls:
    """One bucket."""

    def __init__(self, http: httpx2.AsyncClient, address: S3Address, sign: Sign) -> None:
        self._http = http
        self._address = address
        self._sign = sign
        self._one_signs = trio.CapacityLimiter(1)

    def __repr__(self) -> str:
        return f"<S3Calls {self._address.base_url}>"

    async def call(
        self,
        method: str,
        key: str,
        query: Query = (),
        *,
        body: bytes = b"",
        allowed: frozenset[int] = frozenset(),
    ) -> S3Answer:
        """Ask, up to three times. Raises ObjectStoreFault for a status from 300 on that is not allowed."""
        for wait_s in (*WAITS_S, None):
            try:
                answer = await self._once(method, key, query, body)
            except ObjectStoreFault:
                if wait_s is None:
                    raise
            else:
                if answer.status < HTTPStatus.MULTIPLE_CHOICES or answer.status in allowed:
                    return answer
                if wait_s is None or answer.status not in AGAIN:
                    raise _refusal(method, key, answer)
            await trio.sleep(wait_s)
        raise AssertionError

    async def read(self, key: str, start: int, end: int, piece_bytes: int) -> AsyncGenerator[bytes, None]:
        """Give a range of an object, piece by piece. Raises ObjectMissing, and ObjectStoreFault."""
        headers = {"range": f"bytes={start}-{end - 1}"}
        request = await self._request("GET", key, (), b"", headers)
        try:
            with trio.fail_after(PIECE_S):
                answer = await self._http.send(request, stream=True)
        except (httpx2.HTTPError, trio.TooSlowError) as fault:
            raise _unreachable("GET", key, fault) from fault
        try:
            await _check_range(key, answer, start, end)
            left = end - start
            async with aclosing(answer.aiter_raw(piece_bytes)) as pieces:
                while left:
                    piece = await _next(key, pieces)
                    if not 0 < len(piece) <= left:
                        raise ObjectStoreFault(f"the S3 store gave another length of {key} than it said")
                    left -= len(piece)
                    yield piece
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
                await answer.aclose()

    async def _once(self, method: str, key: str, query: Query, body: bytes) -> S3Answer:
        request = await self._request(method, key, query, body, {})
        try:
            with trio.fail_after(CALL_S):
                answer = await self._http.send(request, stream=True)
                try:
                    said = await _body(key, answer)
                finally:
                    await answer.aclose()
        except (httpx2.HTTPError, trio.TooSlowError) as fault:
            raise _unreachable(method, key, fault) from fault
        return S3Answer(answer.status_code, answer.headers, said)

    async def _request(
        self, method: str, key: str, query: Query, body: bytes, headers: Mapping[str, str]
    ) -> httpx2.Request:
        words = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in query)
        url = f"{self._address.base_url}/{key}" + (f"?{words}" if words else "")
        digest = hashlib.sha256(body).hexdigest() if body else NOTHING
        signed = await trio.to_thread.run_sync(
            partial(self._sign, method, url, headers, digest),
            limiter=self._one_signs,
            abandon_on_cancel=True,
        )
        more = {"accept-encoding": "identity", "user-agent": "sexton"}
        return self._http.build_request(method, url, headers={**signed, **more}, content=body)


async def _body(key: str, answer: httpx2.Response) -> bytes:
    found = bytearray()
    async with aclosing(answer.aiter_raw()) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) > ANSWER_BYTES:
                raise ObjectStoreFault(f"the S3 store's answer about {key} has no end")
    return bytes(found)


async def _next(key: str, pieces: AsyncGenerator[bytes, None]) -> bytes:
    try:
        with trio.fail_after(PIECE_S):
            return await anext(pieces, b"")
    except (httpx2.HTTPError, trio.TooSlowError) as fault:
        raise _unreachable("GET", key, fault) from fault


async def _check_range(key: str, answer: httpx2.Response, start: int, end: int) -> None:
    if answer.status_code not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        try:
            with trio.fail_after(PIECE_S):
                body = await _body(key, answer)
        except (httpx2.HTTPError, trio.TooSlowError):
            body = b""
        raise _refusal("GET", key, S3Answer(answer.status_code, answer.headers, body))
    whole = answer.status_code == HTTPStatus.OK
    place = answer.headers.get("content-range", "")
    if (start if whole else not place.startswith(f"bytes {start}-{end - 1}/")) or answer.headers.get(
        "content-length"
    ) != str(end - start):
        raise ObjectStoreFault(f"the S3 store gave another range of {key} than bytes {start} to {end - 1}")


def _refusal(method: str, key: str, answer: S3Answer) -> ObjectStoreFault:
    words = said(answer.body)
    what = f"the S3 store answered {answer.status} to {method} {key}" + (f": {words}" if words else "")
    # A bucket that is not there is a fault of the store's, not of one object.
    if answer.status == HTTPStatus.NOT_FOUND and not words.startswith("NoSuchBucket"):
        return ObjectMissing(what)
    return ObjectStoreFault(what)


def _unreachable(method: str, key: str, fault: Exception) -> ObjectStoreFault:
    why = "it took too long" if isinstance(fault, trio.TooSlowError) else f"{fault}" or type(fault).__name__
    return ObjectStoreFault(f"the S3 store cannot be reached for {method} {key}: {why}")
