"""What the commands about backups share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sexton_cli.data_folder import KEY_FILE as API_KEY_FILE
from sexton_cli.exits import FAILED, Fault
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Manifest, shown_time
from sexton_storage.backups.repository import Found
from sexton_storage.vault import KEY_FILE, KEY_VARIABLE

STATE_FILES: Final = (KEY_FILE, API_KEY_FILE, "identity.toml", "billing.toml", "catalogue.json")
"""What a server cannot make again of the files in its data folder."""


@contextmanager
def refusing() -> Iterator[None]:
    """Tell what is wrong with a backup as every command tells what went wrong."""
    try:
        yield
    except BackupFault as fault:
        raise Fault(str(fault), f"{fault.way_out}.", status=FAILED) from fault


def keys_of(data: Path, environ: Mapping[str, str], others: tuple[Path, ...]) -> Mapping[str, bytes]:
    """Read what is to be sealed: files of the data folder, and others by their names. Raises BackupFault."""
    found = {name: (data / name).read_bytes() for name in STATE_FILES if (data / name).is_file()}
    if given := environ.get(KEY_VARIABLE):
        found[KEY_FILE] = "".join(f"{entry}\n" for entry in given.replace(",", "\n").split()).encode()
    for path in others:
        if path.name in found:
            raise BackupFault(
                f"two files to be sealed have the name {path.name}", "Give one of them another name"
            )
        try:
            found[path.name] = path.read_bytes()
        except OSError as fault:
            raise BackupFault(f"{path} cannot be read: {fault.strerror}", "See to --secret") from fault
    if KEY_FILE not in found:
        raise BackupFault(
            f"there is no master key in {data}, nor in {KEY_VARIABLE}",
            "Give --data the server's folder, set the variable, or say --without-keys",
        )
    return found


def facts_of(manifest: Manifest) -> dict[str, Any]:
    """What is told of a backup."""
    return {
        "id": manifest.id,
        "kind": str(manifest.kind),
        "began_at": shown_time(manifest.began_at),
        "ended_at": shown_time(manifest.ended_at),
        "size": manifest.size,
        "release": manifest.release,
        "schema": manifest.schema,
        "keys": manifest.recipient is not None,
    }


def row_of(found: Found) -> dict[str, Any]:
    """One line of the list."""
    if found.manifest is None:
        return {"id": found.id, "damage": str(found.fault)}
    return {**facts_of(found.manifest), "damage": None}
