"""Keeps the files that the run of a trial left, which would end with its server."""

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sexton_cli.demo.client import Client
from sexton_cli.exits import CONFIG, FAILED, USAGE, Fault
from sexton_cli.trial.answers import well

PAGE: Final = 200


def require_empty(folder: Path | None) -> None:
    """Raises Fault where there is something already: what a run left is not mixed with it."""
    try:
        taken = folder is not None and folder.exists() and next(folder.iterdir(), None) is not None
    except OSError as fault:
        raise _unusable(folder, fault) from fault
    if taken:
        raise Fault(f"{folder} is not empty", "Name a folder that is new or empty with --out.", status=USAGE)


async def keep_files(client: Client, workspace: str, event_id: str, folder: Path) -> list[Mapping[str, Any]]:
    """Write what the last attempt left under each name; gives the files as they are listed. Raises Fault."""
    found = await _listed(client, f"{workspace}/events/{event_id}/artefacts")
    # By a server's rule names lead to nowhere else: no empty parts, no dots, no slash in front.
    for row in found:
        target = folder / row["name"]
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            await _get(client, f"{workspace}/artefacts/{row['artefact_id']}/content", row, target)
        except OSError as fault:
            raise _unusable(target, fault) from fault
    return found


async def _listed(client: Client, path: str) -> list[Mapping[str, Any]]:
    rows: dict[str, Mapping[str, Any]] = {}
    more = ""
    while True:
        page = well(await client.get(f"{path}?limit={PAGE}{more}"), "the files")
        rows |= {row["name"]: row for row in page["items"]}
        if page.get("next_cursor") is None:
            return list(rows.values())
        more = f"&cursor={quote(page['next_cursor'], safe='')}"


async def _get(client: Client, path: str, row: Mapping[str, Any], target: Path) -> None:
    digest = hashlib.sha256()
    with target.open("xb") as file:
        async with client.http.stream("GET", path, headers=client.headers) as answer:
            async for piece in answer.aiter_bytes():
                digest.update(piece)
                file.write(piece)
    if answer.status_code != HTTPStatus.OK or digest.hexdigest() != row["sha256"]:
        target.unlink()
        raise Fault(f"the file {row['name']!r} could not be read from the server", status=FAILED)


def _unusable(place: Path | None, fault: OSError) -> Fault:
    return Fault(f"{place}: {fault.strerror}", "Name another folder with --out.", status=CONFIG)
