"""What runners are refused under the leases that they hold, as it comes over their connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

import httpx2
import orjson

from tests.simulation.product.runs import RefusedUnder, Runs

LEASES: Final = "/v1/runners/me/leases"
LOST_CODES: Final = frozenset({"UZ-RUN-005", "UZ-RUN-006", "UZ-RUN-011"})
"""What tells a run that its lease is lost."""
REFUSED: Final = 400
ASKED: Final = "asked_ms"


def note_refusals(http: httpx2.AsyncClient, runs: Runs) -> None:
    """Have refusals noted that come over these connections under a lease, beside other hooks."""

    async def ask(asked: httpx2.Request) -> None:
        asked.extensions[ASKED] = runs.now_ms()

    async def hear(answer: httpx2.Response) -> None:
        path = answer.request.url.path
        if not path.startswith(LEASES):
            return
        if answer.status_code >= REFUSED or path.endswith(":renew"):
            found = orjson.loads(await answer.aread())
            asked_ms, now = answer.request.extensions[ASKED], runs.now_ms()
            for lease_id, what, status, code in _refused(path, answer.status_code, found):
                runs.refused.append(RefusedUnder(lease_id, what, status, code, asked_ms, now))

    hooks = http.event_hooks
    http.event_hooks = {"request": [*hooks["request"], ask], "response": [*hooks["response"], hear]}


def _refused(path: str, status: int, found: Any) -> Iterator[tuple[UUID, str, int, str]]:
    """By lease: what was asked, the status and the code.

    >>> lease = UUID(int=1)
    >>> list(_refused(f"{LEASES}/{lease}/gates", 409, {"error_code": "UZ-RUN-005"}))[0][1:]
    ('gates', 409, 'UZ-RUN-005')
    >>> many = {"results": [{"lease_id": str(lease), "ok": False, "status": 503, "error_code": "UZ-API-003"}]}
    >>> list(_refused(f"{LEASES}:renew", 200, many))[0][1:]
    ('renew', 503, 'UZ-API-003')
    """
    if path == f"{LEASES}:renew":
        for one in found.get("results", ()):
            if not one["ok"]:
                yield UUID(one["lease_id"]), "renew", one["status"], one["error_code"]
    elif path != LEASES and status >= REFUSED:
        lease_id, _, what = path.removeprefix(f"{LEASES}/").partition("/")
        yield UUID(lease_id), what.partition("/")[0], status, found.get("error_code", "")
