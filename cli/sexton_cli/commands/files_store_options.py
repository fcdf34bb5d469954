"""The options that say where files are kept, if not in the database, and where the archive is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from sexton_storage.objects.s3_address import DEFAULT_REGION, BadAddress, S3Address, read_address

Option = Callable[[Any], Any]

S3_OPTIONS: Final[tuple[Option, ...]] = (
    click.option(
        "--s3-endpoint",
        metavar="URL",
        envvar="SEXTON_S3_ENDPOINT",
        help="Where that store is, such as https://minio.example.com:9000. [default: that of AWS]",
    ),
    click.option(
        "--s3-region",
        metavar="REGION",
        envvar=["SEXTON_S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"],
        help=f"Its region. [default: {DEFAULT_REGION}]",
    ),
)

FILES_STORE_OPTIONS: Final[tuple[Option, ...]] = (
    click.option(
        "--files-store",
        metavar="s3://BUCKET/PREFIX",
        envvar="SEXTON_FILES_STORE",
        help="S3-compatible store for files and snapshots that are whole, in place of the database.",
    ),
    click.option(
        "--archive",
        metavar="DIR|s3://BUCKET/PREFIX",
        envvar="SEXTON_ARCHIVE",
        help="Folder or S3-compatible store that gets what goes by age before it is deleted.",
    ),
    *S3_OPTIONS,
)


def take_stores(given: dict[str, object]) -> dict[str, S3Address | Path | None]:
    """What the options say, taken out of ``given``.

    Without a store files stay in the database; without an archive what is old is deleted at once.
    """
    endpoint, region = given.pop("s3_endpoint"), given.pop("s3_region")
    where = str(endpoint) if endpoint else None, str(region) if region else None
    store, archive = given.pop("files_store"), given.pop("archive")
    return {
        "files_store": _address("--files-store", str(store), *where) if store else None,
        "archive": read_archive(str(archive), *where) if archive else None,
    }


def read_archive(text: str, endpoint: str | None, region: str | None) -> S3Address | Path:
    """Read where an archive is. Raises UsageError."""
    return _address("--archive", text, endpoint, region) if "://" in text else Path(text)


def _address(option: str, text: str, endpoint: str | None, region: str | None) -> S3Address:
    try:
        return read_address(text, endpoint, region)
    except BadAddress as fault:
        raise click.UsageError(f"{option}: {fault}") from fault
