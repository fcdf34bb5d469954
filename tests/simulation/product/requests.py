"""Requests in words, for the tale of a run: what was asked, and what its sender has learned."""

from collections.abc import Iterator
from typing import Any, Final

import httpx2
import orjson

from tests.simulation.world.tale import Tale
from tests.simulation.world.timeline import START_S

SHORT_S: Final = 0.05
"""An answer that comes sooner needs no word on when it was asked for."""
_AT_GATE: Final = {"approve": "approves", "deny": "denies"}
_IN_BULK: Final = {"events:replay": "replayed", "events:cancel": "cancelled"}
QUIET: Final = ("/heartbeats", "/transcripts", "/transcript", "/activity", "/credentials")
"""Whose success tells nobody anything."""


def seconds(at_ms: int, start_s: float = START_S) -> str:
    """A time of the database's clock, as the tale counts.

    >>> seconds(round(START_S * 1000) + 12_345)
    '12.345 s'
    """
    return f"{at_ms / 1000 - start_s:.3f} s"


def told(method: str, path: str, body: bytes, status: int, answer: bytes, *, start_s: float = START_S) -> str:
    """What was asked and what was answered; empty for what nobody asks about.

    >>> told("POST", "/v1/runners/me/leases", b'{"max": 2}', 200, b'{"leases": []}')
    ''
    >>> told("POST", "/v1/workspaces/w/approvals/g:deny", b"{}", 200, b'{"outcome": "denied"}')
    'denies gate g; learns: it is denied'
    >>> told("POST", "/v1/runners/me/leases/l/renew", b"{}", 409, b'{"error_code": "UZ-RUN-005"}')
    'asks to renew lease l; learns: UZ-RUN-005'
    """
    asked, known = _json(body), _json(answer)
    if status >= 400:
        said = _asked(method, path, asked)
        return f"{said}; learns: {known.get('error_code') or status}"
    if path.endswith(QUIET) and not known.get("cancelled_lease_ids"):
        return ""
    learned = ", ".join(_learned(path, known, start_s))
    if path.endswith("/me/leases") and not learned:
        return ""
    return f"{_asked(method, path, asked)}; learns: {learned or status}"


def _asked(method: str, path: str, asked: Any) -> str:
    match path.strip("/").split("/"):
        case [_, "webhooks", agent, *_]:
            return f"delivers {asked['workflow_run']['delivery']} to agent {agent}"
        case [*_, "me", "leases"]:
            return "asks for work"
        case [*_, "leases", lease, "renew"]:
            return f"asks to renew lease {lease}"
        case [*_, "leases:renew"]:
            return f"asks to renew {_listed('lease', (one['lease_id'] for one in asked['leases']))}"
        case [*_, "me", "reports"]:
            return _report(asked)
        case [*_, "reports:batch"]:
            return " and ".join(_report(one) for one in asked["reports"])
        case [*_, "leases", lease, "gates"]:
            return f"asks for an approval under lease {lease}"
        case [*_, "heartbeats"]:
            return f"says that it holds {_listed('lease', asked.get('active_lease_ids', ()))}"
        case [*_, ("events:replay" | "events:cancel") as what]:
            return f"has events {_IN_BULK[what]} by {asked['filter']}"
        case [*_, "jobs", decided]:
            job, _, word = decided.partition(":")
            return f"has job {job} {word}"
        case [*_, "erasures"]:
            return f"has {asked['value']} {'counted' if asked['dry_run'] else 'erased'}"
        case [*_, "approvals", decided]:
            gate, _, word = decided.partition(":")
            return f"{_AT_GATE.get(word, word)} gate {gate}"
        case _:
            return f"{method} {path}"


def _report(asked: Any) -> str:
    if "lease_id" not in asked:
        return "reports"
    return f"reports lease {asked['lease_id']} as {asked['outcome']}, with token {asked['fencing_token']}"


def _learned(path: str, known: Any, start_s: float) -> Iterator[str]:
    if path.endswith("/github"):
        again = "" if known.get("accepted") else ", which was there already"
        yield f"it is event {known['event_id']}{again}"
        return
    for lease in [known["lease"]] if known.get("lease") else known.get("leases") or ():
        if "fencing_token" in lease:
            yield (
                f"it has lease {lease['lease_id']} of event {lease['event']['event_id']}, token"
                f" {lease['fencing_token']}, until {seconds(lease['lease_expires_at'], start_s)}"
            )
        elif "lease_expires_at" in lease:
            yield f"lease {lease['lease_id']} holds until {seconds(lease['lease_expires_at'], start_s)}"
    for result in known.get("results") or ():
        yield f"lease {result['lease_id']} {_result(result, start_s)}"
    if "lease_expires_at" in known:
        yield f"it holds until {seconds(known['lease_expires_at'], start_s)}"
    if known.get("cancelled_lease_ids"):
        yield f"{_listed('lease', known['cancelled_lease_ids'])} is to stop"
    if "outcome" in known:
        yield f"it is {known['outcome']}"
    if "gate_id" in known and "outcome" not in known:
        yield f"gate {known['gate_id']} is {known.get('status', 'open')}"
    if known.get("job"):
        yield f"it is job {known['job']['job_id']}, about {known['total']} events"
    elif "job_id" in known:
        yield f"it is {known['status']}"
    if "erasure_id" in known:
        yield f"it is erasure {known['erasure_id']}"
    if "duplicate" in known:
        yield f"{'it was kept before' if known['duplicate'] else 'it is kept'}, as {known.get('status')}"


def _result(result: Any, start_s: float) -> str:
    if "lease_expires_at" in result:
        return f"holds until {seconds(result['lease_expires_at'], start_s)}"
    if (report := result.get("report")) is not None:
        return f"was {'kept before' if report['duplicate'] else 'kept'}, as {report['status']}"
    return f"is answered with {result.get('error_code') or result.get('status')}"


def _listed(noun: str, ids: Any) -> str:
    found = [f"{noun} {one}" for one in ids]
    return ", ".join(found) or f"no {noun}"


def _json(raw: bytes) -> Any:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {"items": found}


def tell_of(http: httpx2.AsyncClient, tale: Tale | None, who: str) -> None:
    """Have told what is asked over these connections, and what is learned, or that no answer came."""
    if tale is None:
        return
    asked_s: dict[httpx2.Request, float] = {}

    async def ask(asked: httpx2.Request) -> None:
        asked_s[asked] = tale.now()

    async def hear(answer: httpx2.Response) -> None:
        asked = answer.request
        if asked.method == "GET":
            asked_s.pop(asked, None)
            return
        body = await answer.aread()
        what = told(
            asked.method, asked.url.path, asked.content, answer.status_code, body, start_s=tale.start_s
        )
        since = _since(tale, asked_s.pop(asked))
        if what:
            tale.tell(who, f"{what}{since}")

    http.event_hooks = {"request": [ask], "response": [hear]}
    setattr(http, "_transport", _Telling(http._transport, tale, who, asked_s))  # noqa: B010 - what mypy knows is private


def _since(tale: Tale, asked_s: float) -> str:
    return f" (asked at {asked_s:.3f} s)" if tale.now() - asked_s > SHORT_S else ""


class _Telling(httpx2.AsyncBaseTransport):
    """Tells of requests that nobody answered: their sender does not know whether they were heard."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, tale: Tale, who: str, asked_s: dict[httpx2.Request, float]
    ) -> None:
        self._inner, self._tale, self._who, self._asked_s = inner, tale, who, asked_s

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._inner.handle_async_request(request)
        except httpx2.TransportError as fault:
            asked_s = self._asked_s.pop(request, self._tale.now())
            if request.method != "GET" and not request.url.path.endswith(QUIET):
                asked = _asked(request.method, request.url.path, _json(request.content))
                what = f"{asked}; hears no answer ({type(fault).__name__}){_since(self._tale, asked_s)}"
                self._tale.tell(self._who, what)
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()
