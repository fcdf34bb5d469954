"""The options that say where files are kept, if not in the database."""

from collections.abc import Callable
from typing import Any, Final

import click

from sexton_storage.objects.s3_address import DEFAULT_REGION, BadAddress, S3Address, read_address

Option = Callable[[Any], Any]

FILES_STORE_OPTIONS: Final[tuple[Option, ...]] = (
    click.option(
        "--files-store",
        metavar="s3://BUCKET/PREFIX",
        envvar="SEXTON_FILES_STORE",
        help="S3-compatible store for files and snapshots that are whole, in place of the database.",
    ),
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


def take_files_store(given: dict[str, object]) -> S3Address | None:
    """What the options say, taken out of ``given``; None: files stay in the database."""
    store, endpoint, region = (given.pop(name) for name in ("files_store", "s3_endpoint", "s3_region"))
    if not store:
        return None
    try:
        return read_address(str(store), str(endpoint) if endpoint else None, str(region) if region else None)
    except BadAddress as fault:
        raise click.UsageError(f"--files-store: {fault}") from fault
