"""Where an S3 store is, and which part of it is ours."""

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

DEFAULT_REGION: Final = "us-east-1"
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*/)*")
_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")
_PREFIX_CHARS: Final = 512


class BadAddress(ValueError):
    """An address that leads to no store; the text says what is wrong with it."""


class S3Address(msgspec.Struct, frozen=True):
    """``base_url`` is that of the bucket, without a last slash; ``prefix`` is empty or ends with one."""

    base_url: str
    prefix: str
    region: str


def read_address(store: str, endpoint: str | None = None, region: str | None = None) -> S3Address:
    """Read ``s3://bucket/prefix``; with an endpoint, buckets are folders of it. Raises BadAddress.

    >>> read_address("s3://files/sexton").base_url, read_address("s3://files/sexton").prefix
    ('https://files.s3.us-east-1.amazonaws.com', 'sexton/')
    >>> read_address("s3://files", "http://127.0.0.1:9000/", "eu-1")
    S3Address(base_url='http://127.0.0.1:9000/files', prefix='', region='eu-1')
    >>> read_address("https://files")
    Traceback (most recent call last):
    ...
    sexton_storage.objects.s3_address.BadAddress: 'https://files' is not like s3://bucket/prefix
    """
    scheme, _, rest = store.partition("://")
    bucket, _, path = rest.partition("/")
    prefix = f"{path.strip('/')}/" if path.strip("/") else ""
    if scheme != "s3" or not _BUCKET.fullmatch(bucket):
        raise BadAddress(f"{store!r} is not like s3://bucket/prefix")
    if not _PREFIX.fullmatch(prefix) or len(prefix) > _PREFIX_CHARS:
        raise BadAddress(
            f"the prefix {prefix!r} may have letters, digits and . _ - between slashes, "
            f"{_PREFIX_CHARS} at most"
        )
    where = region or DEFAULT_REGION
    if not _REGION.fullmatch(where):
        raise BadAddress(f"{where!r} is no name of a region")
    return S3Address(_bucket_url(bucket, endpoint, where), prefix, where)


def _bucket_url(bucket: str, endpoint: str | None, region: str) -> str:
    if endpoint is None:
        # A name with dots fits no certificate of *.s3.
        host = f"s3.{region}.amazonaws.com"
        return f"https://{host}/{bucket}" if "." in bucket else f"https://{bucket}.{host}"
    try:
        parts = urlsplit(endpoint)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        raise BadAddress(f"the endpoint {endpoint!r} is no address") from None
    if wrong or parts.query or parts.fragment or "@" in parts.netloc or parts.path.strip("/"):
        raise BadAddress(f"the endpoint {endpoint!r} is not like https://host:port; credentials go elsewhere")
    return f"{parts.scheme}://{parts.netloc}/{bucket}"
