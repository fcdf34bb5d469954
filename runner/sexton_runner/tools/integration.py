"""The tool that asks for the use of a third-party service, and gets its credential when it is granted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected
from sexton_runner.redact import Redactor
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult
from sexton_runner.tools.lent_secrets import LentSecrets
from sexton_runner.wire import Lease

MAX_REASON_CHARS = 512
# What the control plane says of a service that is not granted, and what the model can do about it.
ADVICE: Mapping[str, str] = {
    "UZ-GRANT-001": "nobody had asked for it; it has been asked for now, and a person has to approve",
    "UZ-GRANT-002": "it has been asked for, and a person has yet to approve",
    "UZ-GRANT-003": "it was denied or revoked; it has been asked for again",
}


@dataclass(frozen=True, slots=True)
class RequestIntegration:
    """``request_integration``."""

    plane: ControlPlane
    lease: Lease
    secrets: LentSecrets
    redactor: Redactor
    name: str = "request_integration"
    parallel_safe: bool = False
    description: str = (
        "Ask for the use of a service. When it is granted its secrets can be named as "
        "${secrets.SERVICE.FIELD} in http_request; when not, the request waits for a person, and the answer "
        "says so: go on without it, or finish."
    )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            ["service", "reason"],
            service={"type": "string", "pattern": "^[a-z0-9_-]{1,64}$"},
            reason={"type": "string", "minLength": 1, "maxLength": MAX_REASON_CHARS},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Take the credential when there is a grant, else ask for one."""
        service = arguments["service"]
        if self.redactor.text(service) != service:
            return ToolResult("the name of the service holds a secret", ok=False)
        try:
            lent = await self.plane.lend(self.lease.lease_id, service)
        except TokenRejected:
            raise
        except Refused as refusal:
            return await self._asked(arguments, refusal)
        self.secrets.add(service, lent.data, lent.hosts)
        places = ", ".join(
            f"${{secrets.{place}}}" for place in self.secrets.places if place.startswith(f"{service}.")
        )
        return ToolResult(f"granted; use {places}", facts={"service": service, "status": "approved"})

    async def _asked(self, arguments: Mapping[str, Any], refusal: Refused) -> ToolResult:
        service, facts = arguments["service"], {"service": arguments["service"], "code": refusal.code}
        if refusal.code not in ADVICE:
            return ToolResult(f"{refusal.code}: {refusal.detail}", ok=False, facts=facts)
        if refusal.code != "UZ-GRANT-002":
            try:
                reason = self.redactor.text(arguments["reason"])
                await self.plane.request_integration(self.lease.lease_id, service, reason)
            except TokenRejected:
                raise
            except Refused as other:
                return ToolResult(f"{other.code}: {other.detail}", ok=False, facts=facts)
        return ToolResult(f"{refusal.code}: {service}: {ADVICE[refusal.code]}", ok=False, facts=facts)
