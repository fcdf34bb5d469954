"""The error codes of the interface, made from the OpenAPI document by `make clients`."""

from sexton_client.shapes import Word


class ErrorCode(Word):
    """Every code that an answer, an event or a stream may have."""

    NONE = ""
    """No server gave a code."""
    UZ_UUIDV7_009 = "UZ-UUIDV7-009"
    """An id in the path or the body is not a UUID."""
    UZ_REQ_001 = "UZ-REQ-001"
    """A field of the body or the query is missing, malformed or out of bounds."""
    UZ_REQ_002 = "UZ-REQ-002"
    """The body is larger than the route takes; the detail says how large it may be."""
    UZ_REQ_003 = "UZ-REQ-003"
    """No resource has this path."""
    UZ_REQ_004 = "UZ-REQ-004"
    """The path exists, but not with this method; see the Allow header."""
    UZ_REQ_005 = "UZ-REQ-005"
    """The body is of another media type than the route takes, or is compressed; the detail names what was sent."""
    UZ_REQ_006 = "UZ-REQ-006"
    """Wait for as long as Retry-After says."""
    UZ_REQ_007 = "UZ-REQ-007"
    """The first request with this Idempotency-Key has no answer yet; try again later."""
    UZ_REQ_008 = "UZ-REQ-008"
    """This Idempotency-Key was used with another body."""
    UZ_REQ_009 = "UZ-REQ-009"
    """The current state does not allow this; current_state names it."""
    UZ_API_001 = "UZ-API-001"
    """The server, or the share of the caller, is at its ceiling; try again after Retry-After."""
    UZ_API_002 = "UZ-API-002"
    """The server, or the share of the caller, holds as many streams as it may."""
    UZ_API_003 = "UZ-API-003"
    """The mailbox was full, no reply came in time, or too many answers are under way to add this one."""
    UZ_API_004 = "UZ-API-004"
    """The bodies under way take as much memory as they may; try again after Retry-After."""
    UZ_API_005 = "UZ-API-005"
    """The server holds as many connections as it may, in all or from this address."""
    UZ_INTERNAL_001 = "UZ-INTERNAL-001"
    """The database cannot be reached; it is safe to try again."""
    UZ_INTERNAL_002 = "UZ-INTERNAL-002"
    """The database refused a statement that it should have accepted."""
    UZ_INTERNAL_003 = "UZ-INTERNAL-003"
    """The server failed; look for the request id in its log."""
    UZ_AUTH_001 = "UZ-AUTH-001"
    """The token is valid but does not allow this."""
    UZ_AUTH_002 = "UZ-AUTH-002"
    """The token is missing or invalid."""
    UZ_AUTH_003 = "UZ-AUTH-003"
    """The user token or the API key has run out; get a new one."""
    UZ_AUTH_004 = "UZ-AUTH-004"
    """The identity provider cannot be reached."""
    UZ_AUTH_005 = "UZ-AUTH-005"
    """No such auth session, or it has expired."""
    UZ_AUTH_006 = "UZ-AUTH-006"
    """The auth session expired before it was completed."""
    UZ_AUTH_007 = "UZ-AUTH-007"
    """The auth session was completed before."""
    UZ_AUTH_008 = "UZ-AUTH-008"
    """Too many auth sessions are open, in all or from this address."""
    UZ_AUTH_009 = "UZ-AUTH-009"
    """The caller's role is too low."""
    UZ_AUTH_010 = "UZ-AUTH-010"
    """The token claims a role that does not exist here."""
    UZ_AUTH_011 = "UZ-AUTH-011"
    """The six digits are not those on the approval page."""
    UZ_AUTH_012 = "UZ-AUTH-012"
    """The token of this auth session was already collected."""
    UZ_AUTH_013 = "UZ-AUTH-013"
    """The auth session was ended, or too many codes were wrong."""
    UZ_AUTH_014 = "UZ-AUTH-014"
    """Nobody has approved this auth session."""
    UZ_AUTH_015 = "UZ-AUTH-015"
    """The auth session was approved before."""
    UZ_AUTH_016 = "UZ-AUTH-016"
    """The public key is not a P-256 key in SPKI form."""
    UZ_AUTH_017 = "UZ-AUTH-017"
    """The token name is too long or has characters that are not allowed."""
    UZ_AUTH_018 = "UZ-AUTH-018"
    """The verification code is not six digits."""
    UZ_AUTH_019 = "UZ-AUTH-019"
    """The ciphertext is not base64url, or has no room for its tag."""
    UZ_AUTH_020 = "UZ-AUTH-020"
    """The nonce is not twelve bytes."""
    UZ_AUTH_021 = "UZ-AUTH-021"
    """Only a platform admin may do this."""
    UZ_APIKEY_003 = "UZ-APIKEY-003"
    """The tenant has no key of this id."""
    UZ_APIKEY_004 = "UZ-APIKEY-004"
    """The key was revoked; use another."""
    UZ_APIKEY_005 = "UZ-APIKEY-005"
    """The tenant, or the agent, already has a key with this name."""
    UZ_APIKEY_006 = "UZ-APIKEY-006"
    """The key was revoked before."""
    UZ_APIKEY_007 = "UZ-APIKEY-007"
    """A revoked key stays revoked; create another."""
    UZ_APIKEY_008 = "UZ-APIKEY-008"
    """Revoke the key before you delete it."""
    UZ_MEMBER_001 = "UZ-MEMBER-001"
    """The tenant has no member of this id."""
    UZ_MEMBER_002 = "UZ-MEMBER-002"
    """Nobody would be left who can admit people to the tenant, or run the platform."""
    UZ_MEMBER_003 = "UZ-MEMBER-003"
    """Somebody of this subject signs in here already, to this tenant or another."""
    UZ_WORKSPACE_001 = "UZ-WORKSPACE-001"
    """The tenant has no workspace of this id."""
    UZ_WORKSPACE_002 = "UZ-WORKSPACE-002"
    """A paused workspace starts no work."""
    UZ_WORKSPACE_003 = "UZ-WORKSPACE-003"
    """The free plan allows no more of these."""
    UZ_WORKSPACE_004 = "UZ-WORKSPACE-004"
    """The tenant already has a workspace with this name."""
    UZ_BILLING_001 = "UZ-BILLING-001"
    """The subscription id has a format that the payment provider does not use."""
    UZ_BILLING_002 = "UZ-BILLING-002"
    """The workspace has no plan on record."""
    UZ_BILLING_003 = "UZ-BILLING-003"
    """The plan on record is inconsistent."""
    UZ_BILLING_004 = "UZ-BILLING-004"
    """No such billing event."""
    UZ_BILLING_005 = "UZ-BILLING-005"
    """The tenant's balance is zero."""
    UZ_TENANT_001 = "UZ-TENANT-001"
    """No tenant has this id."""
    UZ_SCORING_001 = "UZ-SCORING-001"
    """context_tokens is 512 to 8192."""
    UZ_RETENTION_001 = "UZ-RETENTION-001"
    """With the days that were sent, events that were charged would be deleted at once."""
    UZ_ENTL_001 = "UZ-ENTL-001"
    """What the plan allows cannot be read now."""
    UZ_ENTL_003 = "UZ-ENTL-003"
    """The plan's events for today are used up."""
    UZ_ENTL_004 = "UZ-ENTL-004"
    """The plan does not include a tool or runtime of this agent."""
    UZ_ENTL_005 = "UZ-ENTL-005"
    """The tenant has as many of these as its plan allows."""
    UZ_RUNS_410 = "UZ-RUNS-410"
    """The run pipeline is gone; agent events took its place."""
    UZ_CATALOGUE_001 = "UZ-CATALOGUE-001"
    """The operator offers no model, so there are no prices to show."""
    UZ_WH_001 = "UZ-WH-001"
    """No agent has this id."""
    UZ_WH_002 = "UZ-WH-002"
    """The body is not JSON of the form that its source sends."""
    UZ_WH_003 = "UZ-WH-003"
    """The agent exists but is not active."""
    UZ_WH_004 = "UZ-WH-004"
    """The agent was killed; its webhooks are closed for good."""
    UZ_WH_010 = "UZ-WH-010"
    """The signature is missing or malformed, or was made over other bytes or with another secret."""
    UZ_WH_011 = "UZ-WH-011"
    """The timestamp is further from now than the trigger tolerates."""
    UZ_WH_020 = "UZ-WH-020"
    """The vault has no secret for this source, or the path names none."""
    UZ_WH_030 = "UZ-WH-030"
    """The body is over 1 MiB."""
    UZ_WH_040 = "UZ-WH-040"
    """The workspace has no delivery of this id, or its seven days are over."""
    UZ_WH_041 = "UZ-WH-041"
    """An event has the body, or it was not read, or newer ones took its room."""
    UZ_ZMB_001 = "UZ-ZMB-001"
    """The agent has spent its dollars for the day or month."""
    UZ_ZMB_002 = "UZ-ZMB-002"
    """The agent took longer than it may."""
    UZ_ZMB_003 = "UZ-ZMB-003"
    """The vault lacks a credential that the agent names."""
    UZ_ZMB_004 = "UZ-ZMB-004"
    """The runner could not start the event."""
    UZ_ZMB_005 = "UZ-ZMB-005"
    """The run's checkpoint could not be kept or read."""
    UZ_ZMB_006 = "UZ-ZMB-006"
    """The workspace already has an agent with this name."""
    UZ_ZMB_008 = "UZ-ZMB-008"
    """One of the agent's two files does not compile; the detail names line and key."""
    UZ_ZMB_009 = "UZ-ZMB-009"
    """The workspace has no agent of this id."""
    UZ_ZMB_010 = "UZ-ZMB-010"
    """The agent's state does not allow this change."""
    UZ_ZMB_011 = "UZ-ZMB-011"
    """Both files carry the same top-level name."""
    UZ_ZMB_012 = "UZ-ZMB-012"
    """Only an active agent takes messages; resume it first."""
    UZ_EVENT_001 = "UZ-EVENT-001"
    """The agent, or the workspace, has no event of this id."""
    UZ_EVENT_002 = "UZ-EVENT-002"
    """As many events wait as may, of the agent or its workspace, or the oldest has waited too long; `bound` says which."""
    UZ_APPLY_001 = "UZ-APPLY-001"
    """Another has applied a folder to the workspace since this revision was read; read it again."""
    UZ_APPLY_002 = "UZ-APPLY-002"
    """Another is applying a folder to the workspace at this moment; try again."""
    UZ_ERASURE_001 = "UZ-ERASURE-001"
    """The workspace has no erasure of this id."""
    UZ_ERASURE_002 = "UZ-ERASURE-002"
    """As many erasures of the workspace as may be are not over yet."""
    UZ_JOB_001 = "UZ-JOB-001"
    """The workspace has no bulk job of this id."""
    UZ_JOB_002 = "UZ-JOB-002"
    """As many bulk jobs of the workspace as may be are not over."""
    UZ_FAILURE_001 = "UZ-FAILURE-001"
    """The workspace has no group of failures of this id."""
    UZ_FILE_001 = "UZ-FILE-001"
    """The workspace has no artefact of this id, or it has been deleted."""
    UZ_FILE_002 = "UZ-FILE-002"
    """The workspace keeps as many bytes of files as it may; delete some, or have the operator raise the quota."""
    UZ_FILE_003 = "UZ-FILE-003"
    """The run has left as many files as one may, or the sender as many uploads that became nothing yet."""
    UZ_FILE_004 = "UZ-FILE-004"
    """The file is larger than one may be; the detail says how large that is."""
    UZ_FILE_005 = "UZ-FILE-005"
    """Bytes before this part are missing, or it does not end with a chunk; `received` says where to go on."""
    UZ_FILE_006 = "UZ-FILE-006"
    """The bytes that came have another SHA-256, or the file has not come whole."""
    UZ_FILE_007 = "UZ-FILE-007"
    """The attempt has left another content under this name; nothing is overwritten."""
    UZ_FILE_008 = "UZ-FILE-008"
    """The sender has no upload of this id, or it was given up."""
    UZ_FILE_009 = "UZ-FILE-009"
    """The range begins after the end of the file; Content-Range says how long it is."""
    UZ_FILE_010 = "UZ-FILE-010"
    """The run did well, but left files that could not be kept; its text says which and why."""
    UZ_FILE_011 = "UZ-FILE-011"
    """What the run was to start from is not kept any more, or is damaged; reset the agent's workspace to start from an empty folder."""
    UZ_FILE_012 = "UZ-FILE-012"
    """The run did well, but its workspace could not be kept; its text says why."""
    UZ_FILE_013 = "UZ-FILE-013"
    """The store that keeps the file does not answer, refuses, or gives other bytes than it took; the detail says which. Nothing is deleted: try again later."""
    UZ_FILE_014 = "UZ-FILE-014"
    """What the event brings is not kept any more, is damaged, or takes more than the run's disk; the detail says which."""
    UZ_SCHEDULE_001 = "UZ-SCHEDULE-001"
    """The agent has no schedule of this id."""
    UZ_FOLLOWUP_001 = "UZ-FOLLOWUP-001"
    """The agent has no follow-up of this id."""
    UZ_AGENT_001 = "UZ-AGENT-001"
    """The tenant has no agent or proposal of this id."""
    UZ_AGENT_002 = "UZ-AGENT-002"
    """The proposal was approved or rejected before."""
    UZ_HARNESS_001 = "UZ-HARNESS-001"
    """No such configuration version."""
    UZ_HARNESS_002 = "UZ-HARNESS-002"
    """Only a compiled version can be activated."""
    UZ_HARNESS_003 = "UZ-HARNESS-003"
    """The version that was asked for is gone, or it needs what the agent is not lent, or another runner than the active version."""
    UZ_HARNESS_004 = "UZ-HARNESS-004"
    """The agent is pinned to another version, or the version that it is to be pinned to is not the active one."""
    UZ_SHADOW_001 = "UZ-SHADOW-001"
    """The run is a shadow: nothing that it asks for takes effect."""
    UZ_TOOL_004 = "UZ-TOOL-004"
    """The tool exists, but the agent does not declare it."""
    UZ_TOOL_005 = "UZ-TOOL-005"
    """No tool has this name."""
    UZ_GRANT_001 = "UZ-GRANT-001"
    """The agent has not asked for this service."""
    UZ_GRANT_002 = "UZ-GRANT-002"
    """The request has not been decided yet."""
    UZ_GRANT_003 = "UZ-GRANT-003"
    """The agent's use of the service was denied or revoked."""
    UZ_GATE_001 = "UZ-GATE-001"
    """A check of the agent's work failed."""
    UZ_GATE_002 = "UZ-GATE-002"
    """A check of the agent's work took too long."""
    UZ_GATE_003 = "UZ-GATE-003"
    """The agent could not repair what a check found."""
    UZ_APPROVAL_001 = "UZ-APPROVAL-001"
    """The gates of the configuration are not valid."""
    UZ_APPROVAL_002 = "UZ-APPROVAL-002"
    """There is no such gate, or it is already decided."""
    UZ_APPROVAL_003 = "UZ-APPROVAL-003"
    """The callback's signature or timestamp is wrong."""
    UZ_APPROVAL_004 = "UZ-APPROVAL-004"
    """The gate cannot be reached; what it guards is denied."""
    UZ_APPROVAL_005 = "UZ-APPROVAL-005"
    """The condition of a rule cannot be read."""
    UZ_APPROVAL_006 = "UZ-APPROVAL-006"
    """The role user approves nothing that their own agent, or a run that they started, asks for."""
    UZ_CRED_001 = "UZ-CRED-001"
    """The workspace has no key for the provider; add a credential."""
    UZ_CRED_003 = "UZ-CRED-003"
    """The platform has no key for the provider; an admin can add one."""
    UZ_VAULT_001 = "UZ-VAULT-001"
    """data is an object with at least one key."""
    UZ_VAULT_002 = "UZ-VAULT-002"
    """data is at most 4 KB as text."""
    UZ_MCP_001 = "UZ-MCP-001"
    """A workspace declares 64 MCP servers at most; remove one first."""
    UZ_PROVIDER_001 = "UZ-PROVIDER-001"
    """A self-managed provider names its credential."""
    UZ_PROVIDER_002 = "UZ-PROVIDER-002"
    """The vault has no credential of this name."""
    UZ_PROVIDER_003 = "UZ-PROVIDER-003"
    """The credential lacks provider, api_key or model."""
    UZ_PROVIDER_004 = "UZ-PROVIDER-004"
    """The catalogue has no such model."""
    UZ_PROVIDER_005 = "UZ-PROVIDER-005"
    """The tenant has no entry for this provider."""
    UZ_MEM_001 = "UZ-MEM-001"
    """A key reaches the memory of its own agent only."""
    UZ_MEM_002 = "UZ-MEM-002"
    """The workspace has no agent of this id."""
    UZ_MEM_003 = "UZ-MEM-003"
    """The agent's memory cannot be reached."""
    UZ_RELAY_001 = "UZ-RELAY-001"
    """The workspace has no provider to preview with."""
    UZ_CHATPLUGIN_001 = "UZ-CHATPLUGIN-001"
    """The state is unknown, used or expired."""
    UZ_CHATPLUGIN_002 = "UZ-CHATPLUGIN-002"
    """The chat platform did not give a token."""
    UZ_CHATPLUGIN_003 = "UZ-CHATPLUGIN-003"
    """Install the chat integration again."""
    UZ_RUN_001 = "UZ-RUN-001"
    """The runner token is missing or unknown."""
    UZ_RUN_005 = "UZ-RUN-005"
    """The lease was superseded or has ended; the write was refused."""
    UZ_RUN_006 = "UZ-RUN-006"
    """The runner holds no lease of this id."""
    UZ_RUN_007 = "UZ-RUN-007"
    """The run was ended before it began, because no sandbox could be made."""
    UZ_RUN_009 = "UZ-RUN-009"
    """The runner was revoked; enrol it again."""
    UZ_RUN_010 = "UZ-RUN-010"
    """An event runs for twelve hours at most."""
    UZ_RUN_011 = "UZ-RUN-011"
    """The lease has expired or was taken back."""
    UZ_RUN_012 = "UZ-RUN-012"
    """The tenant's balance is zero; the run stops."""
    UZ_ACTOR_001 = "UZ-ACTOR-001"
    """No such actor is awake at this server, or the worker that was named does not answer."""
    UZ_ACTOR_002 = "UZ-ACTOR-002"
    """The server needs it, and there is one only; it can be restarted."""
    UZ_ACTOR_003 = "UZ-ACTOR-003"
    """The server that was named is silent, did not answer in time, or is of another release."""
    UZ_RUN_014 = "UZ-RUN-014"
    """No runner has this id."""
    UZ_RUN_015 = "UZ-RUN-015"
    """An enrolment token works once, within its hour."""
    UZ_RUN_016 = "UZ-RUN-016"
    """Five leases of the event ended without a word from their runners; replay it."""
    UZ_RUN_017 = "UZ-RUN-017"
    """A label that begins with reserved: needs an enrolment token that allows it."""
    UZ_EXEC_001 = "UZ-EXEC-001"
    """The run's session could not be made."""
    UZ_EXEC_002 = "UZ-EXEC-002"
    """The run could not be started."""
    UZ_EXEC_003 = "UZ-EXEC-003"
    """The run was killed at its time limit."""
    UZ_EXEC_009 = "UZ-EXEC-009"
    """The host could not offer what the run needs to be safe."""
    UZ_EXEC_012 = "UZ-EXEC-012"
    """The agent, or a preview, could not be prepared."""
    UZ_EXEC_013 = "UZ-EXEC-013"
    """The agent, or a preview, failed while it ran."""
    UZ_EXEC_014 = "UZ-EXEC-014"
    """The runner was given a configuration that it cannot use."""


HINTS: dict[str, str] = {
    "UZ-UUIDV7-009": "An id in the path or the body is not a UUID.",
    "UZ-REQ-001": "A field of the body or the query is missing, malformed or out of bounds.",
    "UZ-REQ-002": "The body is larger than the route takes; the detail says how large it may be.",
    "UZ-REQ-003": "No resource has this path.",
    "UZ-REQ-004": "The path exists, but not with this method; see the Allow header.",
    "UZ-REQ-005": "The body is of another media type than the route takes, or is compressed; the detail names what was sent.",
    "UZ-REQ-006": "Wait for as long as Retry-After says.",
    "UZ-REQ-007": "The first request with this Idempotency-Key has no answer yet; try again later.",
    "UZ-REQ-008": "This Idempotency-Key was used with another body.",
    "UZ-REQ-009": "The current state does not allow this; current_state names it.",
    "UZ-API-001": "The server, or the share of the caller, is at its ceiling; try again after Retry-After.",
    "UZ-API-002": "The server, or the share of the caller, holds as many streams as it may.",
    "UZ-API-003": "The mailbox was full, no reply came in time, or too many answers are under way to add this one.",
    "UZ-API-004": "The bodies under way take as much memory as they may; try again after Retry-After.",
    "UZ-API-005": "The server holds as many connections as it may, in all or from this address.",
    "UZ-INTERNAL-001": "The database cannot be reached; it is safe to try again.",
    "UZ-INTERNAL-002": "The database refused a statement that it should have accepted.",
    "UZ-INTERNAL-003": "The server failed; look for the request id in its log.",
    "UZ-AUTH-001": "The token is valid but does not allow this.",
    "UZ-AUTH-002": "The token is missing or invalid.",
    "UZ-AUTH-003": "The user token or the API key has run out; get a new one.",
    "UZ-AUTH-004": "The identity provider cannot be reached.",
    "UZ-AUTH-005": "No such auth session, or it has expired.",
    "UZ-AUTH-006": "The auth session expired before it was completed.",
    "UZ-AUTH-007": "The auth session was completed before.",
    "UZ-AUTH-008": "Too many auth sessions are open, in all or from this address.",
    "UZ-AUTH-009": "The caller's role is too low.",
    "UZ-AUTH-010": "The token claims a role that does not exist here.",
    "UZ-AUTH-011": "The six digits are not those on the approval page.",
    "UZ-AUTH-012": "The token of this auth session was already collected.",
    "UZ-AUTH-013": "The auth session was ended, or too many codes were wrong.",
    "UZ-AUTH-014": "Nobody has approved this auth session.",
    "UZ-AUTH-015": "The auth session was approved before.",
    "UZ-AUTH-016": "The public key is not a P-256 key in SPKI form.",
    "UZ-AUTH-017": "The token name is too long or has characters that are not allowed.",
    "UZ-AUTH-018": "The verification code is not six digits.",
    "UZ-AUTH-019": "The ciphertext is not base64url, or has no room for its tag.",
    "UZ-AUTH-020": "The nonce is not twelve bytes.",
    "UZ-AUTH-021": "Only a platform admin may do this.",
    "UZ-APIKEY-003": "The tenant has no key of this id.",
    "UZ-APIKEY-004": "The key was revoked; use another.",
    "UZ-APIKEY-005": "The tenant, or the agent, already has a key with this name.",
    "UZ-APIKEY-006": "The key was revoked before.",
    "UZ-APIKEY-007": "A revoked key stays revoked; create another.",
    "UZ-APIKEY-008": "Revoke the key before you delete it.",
    "UZ-MEMBER-001": "The tenant has no member of this id.",
    "UZ-MEMBER-002": "Nobody would be left who can admit people to the tenant, or run the platform.",
    "UZ-MEMBER-003": "Somebody of this subject signs in here already, to this tenant or another.",
    "UZ-WORKSPACE-001": "The tenant has no workspace of this id.",
    "UZ-WORKSPACE-002": "A paused workspace starts no work.",
    "UZ-WORKSPACE-003": "The free plan allows no more of these.",
    "UZ-WORKSPACE-004": "The tenant already has a workspace with this name.",
    "UZ-BILLING-001": "The subscription id has a format that the payment provider does not use.",
    "UZ-BILLING-002": "The workspace has no plan on record.",
    "UZ-BILLING-003": "The plan on record is inconsistent.",
    "UZ-BILLING-004": "No such billing event.",
    "UZ-BILLING-005": "The tenant's balance is zero.",
    "UZ-TENANT-001": "No tenant has this id.",
    "UZ-SCORING-001": "context_tokens is 512 to 8192.",
    "UZ-RETENTION-001": "With the days that were sent, events that were charged would be deleted at once.",
    "UZ-ENTL-001": "What the plan allows cannot be read now.",
    "UZ-ENTL-003": "The plan's events for today are used up.",
    "UZ-ENTL-004": "The plan does not include a tool or runtime of this agent.",
    "UZ-ENTL-005": "The tenant has as many of these as its plan allows.",
    "UZ-RUNS-410": "The run pipeline is gone; agent events took its place.",
    "UZ-CATALOGUE-001": "The operator offers no model, so there are no prices to show.",
    "UZ-WH-001": "No agent has this id.",
    "UZ-WH-002": "The body is not JSON of the form that its source sends.",
    "UZ-WH-003": "The agent exists but is not active.",
    "UZ-WH-004": "The agent was killed; its webhooks are closed for good.",
    "UZ-WH-010": "The signature is missing or malformed, or was made over other bytes or with another secret.",
    "UZ-WH-011": "The timestamp is further from now than the trigger tolerates.",
    "UZ-WH-020": "The vault has no secret for this source, or the path names none.",
    "UZ-WH-030": "The body is over 1 MiB.",
    "UZ-WH-040": "The workspace has no delivery of this id, or its seven days are over.",
    "UZ-WH-041": "An event has the body, or it was not read, or newer ones took its room.",
    "UZ-ZMB-001": "The agent has spent its dollars for the day or month.",
    "UZ-ZMB-002": "The agent took longer than it may.",
    "UZ-ZMB-003": "The vault lacks a credential that the agent names.",
    "UZ-ZMB-004": "The runner could not start the event.",
    "UZ-ZMB-005": "The run's checkpoint could not be kept or read.",
    "UZ-ZMB-006": "The workspace already has an agent with this name.",
    "UZ-ZMB-008": "One of the agent's two files does not compile; the detail names line and key.",
    "UZ-ZMB-009": "The workspace has no agent of this id.",
    "UZ-ZMB-010": "The agent's state does not allow this change.",
    "UZ-ZMB-011": "Both files carry the same top-level name.",
    "UZ-ZMB-012": "Only an active agent takes messages; resume it first.",
    "UZ-EVENT-001": "The agent, or the workspace, has no event of this id.",
    "UZ-EVENT-002": "As many events wait as may, of the agent or its workspace, or the oldest has waited too long; `bound` says which.",
    "UZ-APPLY-001": "Another has applied a folder to the workspace since this revision was read; read it again.",
    "UZ-APPLY-002": "Another is applying a folder to the workspace at this moment; try again.",
    "UZ-ERASURE-001": "The workspace has no erasure of this id.",
    "UZ-ERASURE-002": "As many erasures of the workspace as may be are not over yet.",
    "UZ-JOB-001": "The workspace has no bulk job of this id.",
    "UZ-JOB-002": "As many bulk jobs of the workspace as may be are not over.",
    "UZ-FAILURE-001": "The workspace has no group of failures of this id.",
    "UZ-FILE-001": "The workspace has no artefact of this id, or it has been deleted.",
    "UZ-FILE-002": "The workspace keeps as many bytes of files as it may; delete some, or have the operator raise the quota.",
    "UZ-FILE-003": "The run has left as many files as one may, or the sender as many uploads that became nothing yet.",
    "UZ-FILE-004": "The file is larger than one may be; the detail says how large that is.",
    "UZ-FILE-005": "Bytes before this part are missing, or it does not end with a chunk; `received` says where to go on.",
    "UZ-FILE-006": "The bytes that came have another SHA-256, or the file has not come whole.",
    "UZ-FILE-007": "The attempt has left another content under this name; nothing is overwritten.",
    "UZ-FILE-008": "The sender has no upload of this id, or it was given up.",
    "UZ-FILE-009": "The range begins after the end of the file; Content-Range says how long it is.",
    "UZ-FILE-010": "The run did well, but left files that could not be kept; its text says which and why.",
    "UZ-FILE-011": "What the run was to start from is not kept any more, or is damaged; reset the agent's workspace to start from an empty folder.",
    "UZ-FILE-012": "The run did well, but its workspace could not be kept; its text says why.",
    "UZ-FILE-013": "The store that keeps the file does not answer, refuses, or gives other bytes than it took; the detail says which. Nothing is deleted: try again later.",
    "UZ-FILE-014": "What the event brings is not kept any more, is damaged, or takes more than the run's disk; the detail says which.",
    "UZ-SCHEDULE-001": "The agent has no schedule of this id.",
    "UZ-FOLLOWUP-001": "The agent has no follow-up of this id.",
    "UZ-AGENT-001": "The tenant has no agent or proposal of this id.",
    "UZ-AGENT-002": "The proposal was approved or rejected before.",
    "UZ-HARNESS-001": "No such configuration version.",
    "UZ-HARNESS-002": "Only a compiled version can be activated.",
    "UZ-HARNESS-003": "The version that was asked for is gone, or it needs what the agent is not lent, or another runner than the active version.",
    "UZ-HARNESS-004": "The agent is pinned to another version, or the version that it is to be pinned to is not the active one.",
    "UZ-SHADOW-001": "The run is a shadow: nothing that it asks for takes effect.",
    "UZ-TOOL-004": "The tool exists, but the agent does not declare it.",
    "UZ-TOOL-005": "No tool has this name.",
    "UZ-GRANT-001": "The agent has not asked for this service.",
    "UZ-GRANT-002": "The request has not been decided yet.",
    "UZ-GRANT-003": "The agent's use of the service was denied or revoked.",
    "UZ-GATE-001": "A check of the agent's work failed.",
    "UZ-GATE-002": "A check of the agent's work took too long.",
    "UZ-GATE-003": "The agent could not repair what a check found.",
    "UZ-APPROVAL-001": "The gates of the configuration are not valid.",
    "UZ-APPROVAL-002": "There is no such gate, or it is already decided.",
    "UZ-APPROVAL-003": "The callback's signature or timestamp is wrong.",
    "UZ-APPROVAL-004": "The gate cannot be reached; what it guards is denied.",
    "UZ-APPROVAL-005": "The condition of a rule cannot be read.",
    "UZ-APPROVAL-006": "The role user approves nothing that their own agent, or a run that they started, asks for.",
    "UZ-CRED-001": "The workspace has no key for the provider; add a credential.",
    "UZ-CRED-003": "The platform has no key for the provider; an admin can add one.",
    "UZ-VAULT-001": "data is an object with at least one key.",
    "UZ-VAULT-002": "data is at most 4 KB as text.",
    "UZ-MCP-001": "A workspace declares 64 MCP servers at most; remove one first.",
    "UZ-PROVIDER-001": "A self-managed provider names its credential.",
    "UZ-PROVIDER-002": "The vault has no credential of this name.",
    "UZ-PROVIDER-003": "The credential lacks provider, api_key or model.",
    "UZ-PROVIDER-004": "The catalogue has no such model.",
    "UZ-PROVIDER-005": "The tenant has no entry for this provider.",
    "UZ-MEM-001": "A key reaches the memory of its own agent only.",
    "UZ-MEM-002": "The workspace has no agent of this id.",
    "UZ-MEM-003": "The agent's memory cannot be reached.",
    "UZ-RELAY-001": "The workspace has no provider to preview with.",
    "UZ-CHATPLUGIN-001": "The state is unknown, used or expired.",
    "UZ-CHATPLUGIN-002": "The chat platform did not give a token.",
    "UZ-CHATPLUGIN-003": "Install the chat integration again.",
    "UZ-RUN-001": "The runner token is missing or unknown.",
    "UZ-RUN-005": "The lease was superseded or has ended; the write was refused.",
    "UZ-RUN-006": "The runner holds no lease of this id.",
    "UZ-RUN-007": "The run was ended before it began, because no sandbox could be made.",
    "UZ-RUN-009": "The runner was revoked; enrol it again.",
    "UZ-RUN-010": "An event runs for twelve hours at most.",
    "UZ-RUN-011": "The lease has expired or was taken back.",
    "UZ-RUN-012": "The tenant's balance is zero; the run stops.",
    "UZ-ACTOR-001": "No such actor is awake at this server, or the worker that was named does not answer.",
    "UZ-ACTOR-002": "The server needs it, and there is one only; it can be restarted.",
    "UZ-ACTOR-003": "The server that was named is silent, did not answer in time, or is of another release.",
    "UZ-RUN-014": "No runner has this id.",
    "UZ-RUN-015": "An enrolment token works once, within its hour.",
    "UZ-RUN-016": "Five leases of the event ended without a word from their runners; replay it.",
    "UZ-RUN-017": "A label that begins with reserved: needs an enrolment token that allows it.",
    "UZ-EXEC-001": "The run's session could not be made.",
    "UZ-EXEC-002": "The run could not be started.",
    "UZ-EXEC-003": "The run was killed at its time limit.",
    "UZ-EXEC-009": "The host could not offer what the run needs to be safe.",
    "UZ-EXEC-012": "The agent, or a preview, could not be prepared.",
    "UZ-EXEC-013": "The agent, or a preview, failed while it ran.",
    "UZ-EXEC-014": "The runner was given a configuration that it cannot use.",
}
"""What each code means, and often what to do, in one sentence."""
