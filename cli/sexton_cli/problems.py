"""Turns error answers into faults; the only place that reads problem documents."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from sexton_cli.exits import FAILED, NO_PERMISSION, PROTOCOL, UNAVAILABLE, Fault

SERVER_FAULTS: Final = 500

_WAYS_OUT: Final[Mapping[str, str]] = {
    "UZ-AUTH-002": "Sign in with 'sexton login', or give another token.",
    "UZ-AUTH-003": "Sign in again with 'sexton login'.",
    "UZ-AUTH-005": "Begin again with 'sexton login'.",
    "UZ-AUTH-006": "Begin again with 'sexton login'.",
    "UZ-AUTH-009": "Ask for a token of a higher role.",
    "UZ-AUTH-012": "Begin again with 'sexton login'.",
    "UZ-AUTH-013": "Begin again with 'sexton login'.",
    "UZ-APIKEY-004": "Sign in with 'sexton login', or give another key.",
    "UZ-APIKEY-005": "Choose another name, or revoke and delete that key.",
    "UZ-APIKEY-008": "Run 'sexton keys revoke' first.",
    "UZ-WORKSPACE-001": "'sexton workspace list' shows the workspaces.",
    "UZ-WORKSPACE-004": "Choose another name.",
    "UZ-ZMB-006": "Choose another name, or change that agent with 'sexton agent update'.",
    "UZ-ZMB-008": "'sexton agent check DIR' lists everything that has to be fixed.",
    "UZ-ZMB-009": "'sexton agent list' shows the agents.",
    "UZ-ZMB-012": "Resume it with 'sexton agent resume'.",
    "UZ-APPROVAL-002": "'sexton approvals list --status all' shows what became of it.",
    "UZ-AGENT-001": "'sexton proposals list AGENT' shows the proposals.",
    "UZ-UUIDV7-009": "Give the id as a list shows it, or six or more characters of its beginning or end.",
    "UZ-AUTH-021": (
        "On the server's machine 'sexton auth link' prints a link that signs a browser in as one;"
        " then run 'sexton login'."
    ),
}
"""What a person at this command line can do; the detail is the server's."""


class _Document(msgspec.Struct, frozen=True):
    """RFC 9457 with our members; whatever else stands there is left alone."""

    error_code: str
    detail: str = ""
    title: str = ""
    request_id: str | None = None


class Refused(Fault):
    """An answer from 400 on, with its code."""

    def __init__(self, http_status: int, document: _Document) -> None:
        code = document.error_code
        super().__init__(
            document.detail or document.title or f"HTTP {http_status}",
            _WAYS_OUT.get(code, ""),
            status=_exit_status(http_status),
            code=code,
            request_id=document.request_id,
        )
        self.http_status = http_status


class Unreachable(Fault):
    """There was no answer at all."""

    def __init__(self, base_url: str, why: str) -> None:
        super().__init__(
            f"{base_url} cannot be reached: {why}",
            "Start the server ('sexton up'), or give its address with --base-url.",
            status=UNAVAILABLE,
        )


class Untrusted(Fault):
    """Somebody answers, but cannot show a certificate that counts here."""

    def __init__(self, base_url: str, why: str, fingerprint: str | None) -> None:
        shown = f" It shows the certificate of SHA-256 fingerprint {fingerprint}." if fingerprint else ""
        super().__init__(
            f"{base_url} is not trusted: {why}.{shown}",
            "If it is yours, let SSL_CERT_FILE name that certificate, or the one of its authority.",
            status=PROTOCOL,
        )


class NotSexton(Fault):
    """An answer that no Sexton server gives."""

    def __init__(self, base_url: str, what: str) -> None:
        super().__init__(
            f"{base_url} does not answer as a Sexton server: {what}",
            "Check the address given with --base-url.",
            status=PROTOCOL,
        )


def read_problem(base_url: str, http_status: int, body: bytes) -> Fault:
    """What an answer from 400 on means. Something between us and the server may have written it."""
    try:
        return Refused(http_status, msgspec.json.decode(body, type=_Document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if http_status >= SERVER_FAULTS:
            return Unreachable(base_url, f"a gateway answers {http_status}")
        return NotSexton(base_url, f"status {http_status} without a problem document")


def _exit_status(http_status: int) -> int:
    if http_status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return NO_PERMISSION
    if http_status == HTTPStatus.TOO_MANY_REQUESTS or http_status >= SERVER_FAULTS:
        return UNAVAILABLE
    return FAILED
