"""Tells a server's refusal in its own words."""

from collections.abc import Mapping
from typing import Any, Final

from sexton_cli.demo.client import Answer
from sexton_cli.exits import FAILED, Fault

BAD_REQUESTS: Final = 400


def well(answer: Answer, what: str) -> Mapping[str, Any]:
    """The body of a success. Raises Fault."""
    if answer.status < BAD_REQUESTS:
        return answer.body
    detail = answer.body.get("detail") or answer.body.get("title") or f"HTTP {answer.status}"
    raise Fault(f"{what}: {detail}", status=FAILED, code=answer.body.get("error_code"))
