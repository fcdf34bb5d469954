"""Signs requests to S3 (Signature Version 4), with credentials from where all tools of AWS look for them."""

from collections.abc import Mapping
from typing import Any

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from sexton_storage.objects.store import ObjectStoreFault

HASH = "sha256"


class _KnownHash(S3SigV4Auth):  # type: ignore[misc]  # botocore publishes no types
    """Signs the hash of a body that the caller has reckoned already."""

    def payload(self, request: Any) -> Any:
        return request.context[HASH]


class AwsSigner:
    """May wait for the host's service of credentials: call it on a thread, one at a time."""

    def __init__(self, region: str) -> None:
        self._region = region
        self._session = Session()
        self._credentials: Any = None

    def sign(self, method: str, url: str, headers: Mapping[str, str], sha256: str) -> Mapping[str, str]:
        """Give the headers with which to send a request. Raises ObjectStoreFault without credentials."""
        request = AWSRequest(method=method, url=url, headers=dict(headers))
        request.context[HASH] = sha256
        try:
            _KnownHash(self._frozen(), "s3", self._region).add_auth(request)
        except BotoCoreError as fault:
            raise ObjectStoreFault(f"no credentials for the S3 store can be had: {fault}") from fault
        return dict(request.headers.items())

    def _frozen(self) -> Any:
        if self._credentials is None:
            self._credentials = self._session.get_credentials()
        if self._credentials is None:
            raise ObjectStoreFault(
                "there are no credentials for the S3 store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or AWS_PROFILE for a profile of ~/.aws/credentials"
            )
        return self._credentials.get_frozen_credentials()
