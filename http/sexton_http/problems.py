"""The one table of codes: what can go wrong, with which status, and where it shows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Shown(Enum):
    """Where a code can be met."""

    ANSWER = "answer"
    EVENT = "event"
    STREAM = "stream"
    STARTUP = "start-up"


@dataclass(frozen=True, slots=True)
class Code:
    """One row. ``title`` is the same for every occurrence; ``cause`` is one sentence for the reference."""

    code: str
    status: int
    title: str
    cause: str
    shown: tuple[Shown, ...]


class Table(Mapping[str, Code]):
    """Rows by code; a duplicate cannot be built."""

    def __init__(self, rows: Iterable[Code]) -> None:
        self._rows: dict[str, Code] = {}
        for row in rows:
            if row.code in self._rows:
                raise ValueError(f"{row.code} stands in the table twice")
            self._rows[row.code] = row

    def __getitem__(self, code: str) -> Code:
        return self._rows[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


_A = (Shown.ANSWER,)
_E = (Shown.EVENT,)
_AE = (Shown.ANSWER, Shown.EVENT)
_AS = (Shown.ANSWER, Shown.STREAM)
_ES = (Shown.EVENT, Shown.STREAM)
_UP = (Shown.STARTUP,)

# fmt: off
CODES = Table(
    Code(*row)
    for row in (
        # --- requests ---------------------------------------------------------------------------------------
        ("UZ-UUIDV7-009", 400, "Invalid ID shape", "An id in the path or the body is not a UUID.", _A),
        ("UZ-REQ-001", 400, "Invalid request", "A field of the body or the query is missing, malformed or out of bounds.", _A),
        ("UZ-REQ-002", 413, "Payload too large", "The body is larger than the route takes; the detail says how large it may be.", _A),
        ("UZ-REQ-003", 404, "No such route", "No resource has this path.", _A),
        ("UZ-REQ-004", 405, "Method not allowed", "The path exists, but not with this method; see the Allow header.", _A),
        ("UZ-REQ-005", 415, "Unsupported media type", "The body is of another media type than the route takes, or is compressed; the detail names what was sent.", _A),
        ("UZ-REQ-006", 429, "Rate limit exceeded", "Wait for as long as Retry-After says.", _A),
        ("UZ-REQ-007", 409, "Idempotent request still running", "The first request with this Idempotency-Key has no answer yet; try again later.", _A),
        ("UZ-REQ-008", 422, "Idempotency key reused", "This Idempotency-Key was used with another body.", _A),
        ("UZ-REQ-009", 409, "Not possible in this state", "The current state does not allow this; current_state names it.", _A),
        ("UZ-API-001", 429, "Too many requests in flight", "The server, or the share of the caller, is at its ceiling; try again after Retry-After.", _A),
        ("UZ-API-002", 503, "Too many streams", "The server, or the share of the caller, holds as many streams as it may.", _A),
        ("UZ-API-003", 503, "Actor busy", "The mailbox was full, no reply came in time, or too many answers are under way to add this one.", _A),
        ("UZ-API-004", 503, "Too many bytes in flight", "The bodies under way take as much memory as they may; try again after Retry-After.", _A),
        ("UZ-API-005", 503, "Too many connections", "The server holds as many connections as it may, in all or from this address.", _A),
        ("UZ-INTERNAL-001", 503, "Database unavailable", "The database cannot be reached; it is safe to try again.", _A),
        ("UZ-INTERNAL-002", 500, "Database error", "The database refused a statement that it should have accepted.", _A),
        ("UZ-INTERNAL-003", 500, "Internal operation failed", "The server failed; look for the request id in its log.", _A),
        # --- who calls --------------------------------------------------------------------------------------
        ("UZ-AUTH-001", 403, "Forbidden", "The token is valid but does not allow this.", _A),
        ("UZ-AUTH-002", 401, "Unauthorized", "The token is missing or invalid.", _A),
        ("UZ-AUTH-003", 401, "Token expired", "The user token or the API key has run out; get a new one.", _A),
        ("UZ-AUTH-004", 503, "Authentication service unavailable", "The identity provider cannot be reached.", _A),
        ("UZ-AUTH-005", 404, "Session not found", "No such auth session, or it has expired.", _A),
        ("UZ-AUTH-006", 401, "Session expired", "The auth session expired before it was completed.", _A),
        ("UZ-AUTH-007", 409, "Session already complete", "The auth session was completed before.", _A),
        ("UZ-AUTH-008", 503, "Session limit reached", "Too many auth sessions are open, in all or from this address.", _A),
        ("UZ-AUTH-009", 403, "Insufficient role", "The caller's role is too low.", _A),
        ("UZ-AUTH-010", 403, "Unsupported role", "The token claims a role that does not exist here.", _A),
        ("UZ-AUTH-011", 400, "Wrong verification code", "The six digits are not those on the approval page.", _A),
        ("UZ-AUTH-012", 410, "Session consumed", "The token of this auth session was already collected.", _A),
        ("UZ-AUTH-013", 410, "Session aborted", "The auth session was ended, or too many codes were wrong.", _A),
        ("UZ-AUTH-014", 410, "Session not approved yet", "Nobody has approved this auth session.", _A),
        ("UZ-AUTH-015", 409, "Session already approved", "The auth session was approved before.", _A),
        ("UZ-AUTH-016", 400, "Invalid public key", "The public key is not a P-256 key in SPKI form.", _A),
        ("UZ-AUTH-017", 400, "Invalid token name", "The token name is too long or has characters that are not allowed.", _A),
        ("UZ-AUTH-018", 400, "Malformed verification code", "The verification code is not six digits.", _A),
        ("UZ-AUTH-019", 400, "Invalid ciphertext", "The ciphertext is not base64url, or has no room for its tag.", _A),
        ("UZ-AUTH-020", 400, "Invalid nonce", "The nonce is not twelve bytes.", _A),
        ("UZ-AUTH-021", 403, "Platform admin needed", "Only a platform admin may do this.", _A),
        ("UZ-APIKEY-003", 404, "API key not found", "The tenant has no key of this id.", _A),
        ("UZ-APIKEY-004", 401, "API key revoked", "The key was revoked; use another.", _A),
        ("UZ-APIKEY-005", 409, "API key name taken", "The tenant, or the agent, already has a key with this name.", _A),
        ("UZ-APIKEY-006", 409, "API key already revoked", "The key was revoked before.", _A),
        ("UZ-APIKEY-007", 409, "API key cannot be re-activated", "A revoked key stays revoked; create another.", _A),
        ("UZ-APIKEY-008", 409, "API key still active", "Revoke the key before you delete it.", _A),
        ("UZ-MEMBER-001", 404, "Member not found", "The tenant has no member of this id.", _A),
        ("UZ-MEMBER-002", 409, "Last admin", "Nobody would be left who can admit people to the tenant, or run the platform.", _A),
        ("UZ-MEMBER-003", 409, "Member known already", "Somebody of this subject signs in here already, to this tenant or another.", _A),
        # --- workspaces, plans, money -----------------------------------------------------------------------
        ("UZ-WORKSPACE-001", 404, "Workspace not found", "The tenant has no workspace of this id.", _A),
        ("UZ-WORKSPACE-002", 402, "Workspace paused", "A paused workspace starts no work.", _A),
        ("UZ-WORKSPACE-003", 402, "Workspace free limit reached", "The free plan allows no more of these.", _A),
        ("UZ-WORKSPACE-004", 409, "Workspace name taken", "The tenant already has a workspace with this name.", _A),
        ("UZ-BILLING-001", 400, "Invalid subscription ID", "The subscription id has a format that the payment provider does not use.", _A),
        ("UZ-BILLING-002", 500, "Billing state missing", "The workspace has no plan on record.", _A),
        ("UZ-BILLING-003", 500, "Billing state invalid", "The plan on record is inconsistent.", _A),
        ("UZ-BILLING-004", 400, "Invalid billing event", "No such billing event.", _A),
        ("UZ-BILLING-005", 402, "Credit exhausted", "The tenant's balance is zero.", _AE),
        ("UZ-TENANT-001", 404, "Tenant not found", "No tenant has this id.", _A),
        ("UZ-SCORING-001", 400, "Invalid scoring context", "context_tokens is 512 to 8192.", _A),
        ("UZ-ENTL-001", 503, "Entitlement service unavailable", "What the plan allows cannot be read now.", _A),
        ("UZ-ENTL-003", 402, "Run limit reached", "The plan's events for today are used up.", _A),
        ("UZ-ENTL-004", 403, "Skill not allowed", "The plan does not include a tool or runtime of this agent.", _A),
        ("UZ-ENTL-005", 402, "Plan limit reached", "The tenant has as many of these as its plan allows.", _A),
        ("UZ-RUNS-410", 410, "Pipeline v1 permanently removed", "The run pipeline is gone; agent events took its place.", _A),
        ("UZ-CATALOGUE-001", 503, "Catalogue empty", "The operator offers no model, so there are no prices to show.", _A),
        # --- webhooks ---------------------------------------------------------------------------------------
        ("UZ-WH-001", 404, "Agent not found for webhook", "No agent has this id.", _A),
        ("UZ-WH-002", 400, "Malformed webhook", "The body is not JSON of the form that its source sends.", _AS),
        ("UZ-WH-003", 403, "Agent paused", "The agent exists but is not active.", _AS),
        ("UZ-WH-004", 410, "Agent killed", "The agent was killed; its webhooks are closed for good.", _A),
        ("UZ-WH-010", 401, "Invalid webhook signature", "The signature is missing or malformed, or was made over other bytes or with another secret.", _AS),
        ("UZ-WH-011", 401, "Stale webhook timestamp", "The timestamp is further from now than the trigger tolerates.", _AS),
        ("UZ-WH-020", 401, "Webhook credential not configured", "The vault has no secret for this source, or the path names none.", _AS),
        ("UZ-WH-030", 413, "Webhook payload too large", "The body is over 1 MiB.", _AS),
        ("UZ-WH-040", 404, "Delivery not found", "The workspace has no delivery of this id, or its seven days are over.", _A),
        ("UZ-WH-041", 410, "Body of delivery not kept", "An event has the body, or it was not read, or newer ones took its room.", _A),
        # --- agents -----------------------------------------------------------------------------------------
        ("UZ-ZMB-001", 402, "Agent budget exceeded", "The agent has spent its dollars for the day or month.", _AE),
        ("UZ-ZMB-002", 500, "Agent timeout", "The agent took longer than it may.", _E),
        ("UZ-ZMB-003", 424, "Agent credential missing", "The vault lacks a credential that the agent names.", _AE),
        ("UZ-ZMB-004", 500, "Agent claim failed", "The runner could not start the event.", _E),
        ("UZ-ZMB-005", 500, "Agent checkpoint failed", "The run's checkpoint could not be kept or read.", _E),
        ("UZ-ZMB-006", 409, "Agent name already exists", "The workspace already has an agent with this name.", _A),
        ("UZ-ZMB-008", 400, "Invalid agent config", "One of the agent's two files does not compile; the detail names line and key.", _A),
        ("UZ-ZMB-009", 404, "Agent not found", "The workspace has no agent of this id.", _A),
        ("UZ-ZMB-010", 409, "Agent already stopped or killed", "The agent's state does not allow this change.", _A),
        ("UZ-ZMB-011", 400, "Skill and trigger files disagree on top-level name", "Both files carry the same top-level name.", _A),
        ("UZ-ZMB-012", 409, "Agent not active", "Only an active agent takes messages; resume it first.", _A),
        ("UZ-EVENT-001", 404, "Event not found", "The agent, or the workspace, has no event of this id.", _A),
        ("UZ-EVENT-002", 429, "Queue full", "As many events wait as may, of the agent or its workspace, or the oldest has waited too long; `bound` says which.", _A),
        ("UZ-APPLY-001", 409, "Applied meanwhile", "Another has applied a folder to the workspace since this revision was read; read it again.", _A),
        ("UZ-APPLY-002", 409, "Being applied", "Another is applying a folder to the workspace at this moment; try again.", _A),
        ("UZ-JOB-001", 404, "Job not found", "The workspace has no bulk job of this id.", _A),
        ("UZ-JOB-002", 409, "Too many jobs", "As many bulk jobs of the workspace as may be are not over.", _A),
        ("UZ-FAILURE-001", 404, "Failure not found", "The workspace has no group of failures of this id.", _A),
        ("UZ-FILE-001", 404, "File not found", "The workspace has no artefact of this id, or it has been deleted.", _A),
        ("UZ-FILE-002", 409, "Quota of files used up", "The workspace keeps as many bytes of files as it may; delete some, or have the operator raise the quota.", _A),
        ("UZ-FILE-003", 409, "Too many files", "The run has left as many files as one may, or the sender as many uploads that became nothing yet.", _A),
        ("UZ-FILE-004", 413, "File too large", "The file is larger than one may be; the detail says how large that is.", _A),
        ("UZ-FILE-005", 409, "Part out of place", "Bytes before this part are missing, or it does not end with a chunk; `received` says where to go on.", _A),
        ("UZ-FILE-006", 409, "File differs from what was declared", "The bytes that came have another SHA-256, or the file has not come whole.", _A),
        ("UZ-FILE-007", 409, "File name taken", "The attempt has left another content under this name; nothing is overwritten.", _A),
        ("UZ-FILE-008", 404, "Upload not found", "The sender has no upload of this id, or it was given up.", _A),
        ("UZ-FILE-009", 416, "Range not satisfiable", "The range begins after the end of the file; Content-Range says how long it is.", _A),
        ("UZ-FILE-010", 500, "Files not kept", "The run did well, but left files that could not be kept; its text says which and why.", _E),
        ("UZ-FILE-011", 410, "Snapshot of the workspace lost", "What the run was to start from is not kept any more, or is damaged; reset the agent's workspace to start from an empty folder.", _AE),
        ("UZ-FILE-012", 500, "Workspace not kept", "The run did well, but its workspace could not be kept; its text says why.", _E),
        ("UZ-FILE-013", 503, "Store of files unavailable", "The store that keeps the file does not answer, refuses, or gives other bytes than it took; the detail says which. Nothing is deleted: try again later.", _A),
        ("UZ-FILE-014", 410, "Files of the event lost", "What the event brings is not kept any more, is damaged, or takes more than the run's disk; the detail says which.", _AE),
        ("UZ-SCHEDULE-001", 404, "Schedule not found", "The agent has no schedule of this id.", _A),
        ("UZ-FOLLOWUP-001", 404, "Follow-up not found", "The agent has no follow-up of this id.", _A),
        ("UZ-AGENT-001", 404, "Agent or proposal not found", "The tenant has no agent or proposal of this id.", _A),
        ("UZ-AGENT-002", 409, "Proposal already decided", "The proposal was approved or rejected before.", _A),
        ("UZ-HARNESS-001", 404, "Config version not found", "No such configuration version.", _A),
        ("UZ-HARNESS-002", 409, "Config version not compiled", "Only a compiled version can be activated.", _A),
        ("UZ-HARNESS-003", 409, "Version cannot be run", "The version that was asked for is gone, or it needs what the agent is not lent, or another runner than the active version.", _AE),
        ("UZ-HARNESS-004", 409, "Agent pinned", "The agent is pinned to another version, or the version that it is to be pinned to is not the active one.", _A),
        ("UZ-TOOL-004", 400, "Tool not attached", "The tool exists, but the agent does not declare it.", (Shown.ANSWER, Shown.STREAM)),
        ("UZ-TOOL-005", 400, "Unknown tool", "No tool has this name.", (Shown.ANSWER, Shown.STREAM)),
        ("UZ-GRANT-001", 403, "No integration grant for service", "The agent has not asked for this service.", _AE),
        ("UZ-GRANT-002", 403, "Integration grant pending approval", "The request has not been decided yet.", _AE),
        ("UZ-GRANT-003", 403, "Integration grant denied or revoked", "The agent's use of the service was denied or revoked.", _AE),
        ("UZ-GATE-001", 500, "Gate command failed", "A check of the agent's work failed.", _E),
        ("UZ-GATE-002", 504, "Gate command timed out", "A check of the agent's work took too long.", _E),
        ("UZ-GATE-003", 500, "Gate repair attempts exhausted", "The agent could not repair what a check found.", _E),
        ("UZ-APPROVAL-001", 400, "Approval parse failed", "The gates of the configuration are not valid.", _A),
        ("UZ-APPROVAL-002", 404, "Approval not found or already resolved", "There is no such gate, or it is already decided.", _A),
        ("UZ-APPROVAL-003", 401, "Approval invalid signature", "The callback's signature or timestamp is wrong.", _A),
        ("UZ-APPROVAL-004", 503, "Approval store unavailable", "The gate cannot be reached; what it guards is denied.", _AE),
        ("UZ-APPROVAL-005", 400, "Approval condition invalid", "The condition of a rule cannot be read.", _A),
        ("UZ-APPROVAL-006", 403, "Approval of one's own", "The role user approves nothing that their own agent, or a run that they started, asks for.", _A),
        # --- credentials, providers, memory -----------------------------------------------------------------
        ("UZ-CRED-001", 503, "LLM provider API key missing", "The workspace has no key for the provider; add a credential.", _AE),
        ("UZ-CRED-003", 503, "Platform LLM key missing", "The platform has no key for the provider; an admin can add one.", _AE),
        ("UZ-VAULT-001", 400, "Credential data must be a non-empty JSON object", "data is an object with at least one key.", _A),
        ("UZ-VAULT-002", 400, "Credential data too large", "data is at most 4 KB as text.", _A),
        ("UZ-MCP-001", 409, "Too many MCP servers", "A workspace declares 64 MCP servers at most; remove one first.", _A),
        ("UZ-PROVIDER-001", 400, "Credential reference missing", "A self-managed provider names its credential.", _A),
        ("UZ-PROVIDER-002", 400, "Provider credential not found", "The vault has no credential of this name.", _A),
        ("UZ-PROVIDER-003", 400, "Provider credential incomplete", "The credential lacks provider, api_key or model.", _A),
        ("UZ-PROVIDER-004", 400, "Model not in the catalogue", "The catalogue has no such model.", _A),
        ("UZ-PROVIDER-005", 404, "Platform key not found", "The tenant has no entry for this provider.", _A),
        ("UZ-MEM-001", 403, "Memory scope denied", "A key reaches the memory of its own agent only.", _A),
        ("UZ-MEM-002", 404, "Agent not found for memory op", "The workspace has no agent of this id.", _A),
        ("UZ-MEM-003", 503, "Memory backend unavailable", "The agent's memory cannot be reached.", _A),
        ("UZ-RELAY-001", 400, "No LLM provider configured", "The workspace has no provider to preview with.", _A),
        ("UZ-CHATPLUGIN-001", 403, "Chat-platform OAuth state invalid", "The state is unknown, used or expired.", _A),
        ("UZ-CHATPLUGIN-002", 502, "Chat-platform token exchange failed", "The chat platform did not give a token.", _A),
        ("UZ-CHATPLUGIN-003", 401, "Chat-platform bot token expired or revoked", "Install the chat integration again.", _A),
        # --- runners and runs -------------------------------------------------------------------------------
        ("UZ-RUN-001", 401, "Invalid runner token", "The runner token is missing or unknown.", _A),
        ("UZ-RUN-005", 409, "Stale fencing token", "The lease was superseded or has ended; the write was refused.", _A),
        ("UZ-RUN-006", 404, "Lease not found", "The runner holds no lease of this id.", _A),
        ("UZ-RUN-007", 500, "Sandbox not established", "The run was ended before it began, because no sandbox could be made.", _E),
        ("UZ-RUN-009", 401, "Runner revoked", "The runner was revoked; enrol it again.", _A),
        ("UZ-RUN-010", 409, "Lease past its ceiling", "An event runs for twelve hours at most.", _AE),
        ("UZ-RUN-011", 409, "Lease lost", "The lease has expired or was taken back.", _A),
        ("UZ-RUN-012", 402, "Balance exhausted", "The tenant's balance is zero; the run stops.", _A),
        ("UZ-ACTOR-001", 404, "Actor not found", "No such actor is awake at this server, or the worker that was named does not answer.", _A),
        ("UZ-ACTOR-002", 409, "Actor cannot be stopped", "The server needs it, and there is one only; it can be restarted.", _A),
        ("UZ-ACTOR-003", 503, "Node does not answer", "The server that was named is silent, did not answer in time, or is of another release.", _A),
        ("UZ-RUN-014", 404, "Runner not found", "No runner has this id.", _A),
        ("UZ-RUN-015", 401, "Enrolment token used or expired", "An enrolment token works once, within its hour.", _A),
        ("UZ-RUN-016", 500, "Attempts used up", "Five leases of the event ended without a word from their runners; replay it.", _E),
        ("UZ-RUN-017", 403, "Label reserved", "A label that begins with reserved: needs an enrolment token that allows it.", _A),
        ("UZ-EXEC-001", 500, "Execution session create failed", "The run's session could not be made.", _E),
        ("UZ-EXEC-002", 500, "Run start failed", "The run could not be started.", _E),
        ("UZ-EXEC-003", 500, "Execution timeout kill", "The run was killed at its time limit.", _E),
        ("UZ-EXEC-009", 500, "Execution startup posture failure", "The host could not offer what the run needs to be safe.", _E),
        ("UZ-EXEC-012", 500, "Runner agent init failed", "The agent, or a preview, could not be prepared.", _ES),
        ("UZ-EXEC-013", 500, "Runner agent run failed", "The agent, or a preview, failed while it ran.", _ES),
        ("UZ-EXEC-014", 400, "Runner invalid config", "The runner was given a configuration that it cannot use.", _E),
        # --- start-up ---------------------------------------------------------------------------------------
        ("UZ-STARTUP-001", 500, "Environment check failed", "The machine lacks something that the server needs.", _UP),
        ("UZ-STARTUP-002", 500, "Config load failed", "The configuration cannot be read, or is wrong.", _UP),
        ("UZ-STARTUP-003", 500, "Database connect failed", "The database cannot be reached or started.", _UP),
        ("UZ-STARTUP-004", 500, "Key-value store connect failed", "The key-value store cannot be reached.", _UP),
        ("UZ-STARTUP-005", 500, "Migration check failed", "The database's schema does not belong to this version.", _UP),
        ("UZ-STARTUP-007", 500, "Consumer group creation failed", "The queues could not be prepared.", _UP),
    )
)
# fmt: on
