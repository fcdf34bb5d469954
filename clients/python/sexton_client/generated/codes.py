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
    "UZ-UUIDV7-009": "Send the id as the server gave it, 36 characters such as `019346de-6400-7000-8000-000000000006`. A name is not taken here: the list of the resource tells its ids, and `sexton` finds them by name for you. An id that is cut off, quoted twice or still the word `null` is the usual reason.",
    "UZ-REQ-001": "Read `detail`: it begins with the place of the fault, a JSON pointer such as `/message` for the body or the name of a query parameter. Compare that field with the route in the reference; `/openapi.json` has its schema. Fields that a route does not have are refused too, so look for a typing error. A cursor is used with the same filters that it came from. Sending the same request again does not help.",
    "UZ-REQ-002": "Send less: `detail` tells the limit of the route. Large content does not belong into a message; upload it as a file and name the file in the message.",
    "UZ-REQ-003": "Compare the path with the reference, letter by letter: it begins with `/v1`, has no slash at its end, and no part of it is empty. Behind a proxy, see whether the proxy cuts or adds a prefix. A newer client may know routes that this server's release lacks; `GET /healthz` tells its version.",
    "UZ-REQ-004": "Use one of the methods in the header `Allow`. A redirect that turned a POST into a GET does this as well: call the final address, with `https`, at once.",
    "UZ-REQ-005": "Send `Content-Type: application/json` and the body uncompressed. With curl that is `-H 'Content-Type: application/json'`; `-d` alone sends a form.",
    "UZ-REQ-006": "Wait for the seconds in `Retry-After`, then send the same request again. Spread what you send, use the bulk form of the route, or follow a stream in place of asking repeatedly. The plan of the tenant says how many requests a second it has.",
    "UZ-REQ-007": "Send the same request with the same key again, after `Retry-After`: you get the answer of the first one. Do not take another key, which would do the work twice.",
    "UZ-REQ-008": "Take a new key for each new request, such as a UUID, and keep it only for repeats of that very request. If the body has a time or a random value in it, make it once and send the same bytes again.",
    "UZ-REQ-009": "Read `current_state`, and look at the thing again: somebody, or time, has changed it since. Very often what you wanted has happened already. The states page says what may follow which state.",
    "UZ-API-001": "Wait for `Retry-After` and send it again; nothing was done. If it goes on: have fewer requests under way at once. The operator sees on `/metrics` which ceiling is full, and can raise `--max-in-flight` or `--caller-share`, or add a server.",
    "UZ-API-002": "Close streams that nobody reads, such as those of old browser tabs, and open one for the workspace in place of one for each agent. Then try again after `Retry-After`. The operator's bound is `--max-streams`.",
    "UZ-API-003": "Try again after `Retry-After`. A write that was answered so may have happened all the same, so send it again with the same `Idempotency-Key`. For a large list ask for fewer items (`limit`). If one agent is always busy, `sexton actor show` tells how long its queue is.",
    "UZ-API-004": "Try again after `Retry-After`, with fewer large bodies at once. The operator's bound is `--max-body-memory`.",
    "UZ-API-005": "Use one client with a pool of connections, and close those that are idle. Where all clients come through one proxy, the operator names it with `--trusted-proxy`, so that it is not counted as one caller; the bounds are `--max-connections` and `--max-connections-per-address`.",
    "UZ-INTERNAL-001": "Send it again after a few seconds, with the same `Idempotency-Key`; the server goes on by itself when the database is back. As the operator, look at `/readyz`, at the database's log, and at the address in `DATABASE_URL`.",
    "UZ-INTERNAL-002": "Repeating does not help. As the operator, look for the `request_id` in the server's log: it has the database's own words. A full disk and a schema that was changed by hand are the usual reasons.",
    "UZ-INTERNAL-003": "This is a fault of the server, not of your request. Look for the `request_id` in its log and report what stands there, as the security page or the issue tracker says. Trying again once is safe with an `Idempotency-Key`.",
    "UZ-AUTH-001": "Use a token that may do this: `detail` says what yours is limited to, and `sexton whoami` shows it. An agent's key reaches its own agent only. A person who was suspended asks an admin (`sexton member resume`).",
    "UZ-AUTH-002": "Send `Authorization: Bearer TOKEN`. Sign in with `sexton login`, or have a key made with `sexton keys create`. Check that the token is whole, belongs to this server, and that a proxy does not drop the header.",
    "UZ-AUTH-003": "Sign in again (`sexton login`), or have a new key made (`sexton keys create`) and put it where the old one was. If it has only just been made, compare the clocks of the machines.",
    "UZ-AUTH-004": "Wait and try again: people who are signed in already go on. As the operator, see whether the server reaches the identity provider's address, through proxy and firewall, and whether `identity.toml` names the right issuer.",
    "UZ-AUTH-005": "Begin again with `sexton login`: a login that is not approved lasts five minutes.",
    "UZ-AUTH-006": "Begin again with `sexton login`, and approve it in the browser within five minutes.",
    "UZ-AUTH-007": "Nothing is left to do for this session. If the terminal has no token, begin again with `sexton login`.",
    "UZ-AUTH-008": "Wait a few minutes, or end logins that nobody finishes (`sexton logout` does not reach them; they end by themselves after five minutes). The operator's bounds are `--max-device-logins` and `--max-device-logins-per-address`.",
    "UZ-AUTH-009": "Ask somebody of the role that `detail` names to do it, or an admin for a higher role (`sexton member role`). For a program, have a key of that role made (`sexton keys create --role`).",
    "UZ-AUTH-010": "The identity provider sends a role that Sexton does not know. Have it send `viewer`, `user`, `operator` or `admin` in the claim `role`.",
    "UZ-AUTH-011": "Type the six digits that the browser shows for this very login; `attempts_left` says how often you may try. After five wrong codes the login ends: begin again with `sexton login`.",
    "UZ-AUTH-012": "A token is handed over once. Begin again with `sexton login`; if you did not collect it yourself, end the sign-in at once with `sexton sign-ins end`.",
    "UZ-AUTH-013": "Begin again with `sexton login`. If the wrong codes were not yours, tell your admin: somebody tried to take the token.",
    "UZ-AUTH-014": "Open the address that `sexton login` shows, sign in there and approve the terminal. A program asks again after a second or two, for five minutes.",
    "UZ-AUTH-015": "Go back to the terminal and type the code that the approval page showed. If it is lost, begin again with `sexton login`.",
    "UZ-AUTH-016": "Send a fresh P-256 (secp256r1) public key, DER in SPKI form, as base64url without padding. `openssl ec -pubout -outform DER` writes that form.",
    "UZ-AUTH-017": "Choose a name of 1 to 64 printable characters, such as `laptop` (`sexton login --name laptop`).",
    "UZ-AUTH-018": "Send the six digits as a string, without spaces, with zeros at its front kept.",
    "UZ-AUTH-019": "Send AES-GCM's ciphertext with its tag of sixteen bytes at the end, as base64url without padding.",
    "UZ-AUTH-020": "Send twelve fresh random bytes as base64url without padding: sixteen characters.",
    "UZ-AUTH-021": "This concerns the whole server and not one tenant. Sign in as a platform admin: whoever runs the server gets a link with `sexton auth link`, on the server's machine. A program needs a key that was made with `--platform-admin`.",
    "UZ-APIKEY-003": "`sexton keys list` shows the keys with their ids; it may have been deleted already.",
    "UZ-APIKEY-004": "Have a new key made (`sexton keys create NAME`) and put it where this one is used. A revoked key never comes back. If nobody of you revoked it, `sexton audit list` tells who did.",
    "UZ-APIKEY-005": "Choose another name, or revoke and delete the old key first (`sexton keys revoke`, `sexton keys delete`).",
    "UZ-APIKEY-006": "Nothing is left to do: the key is without effect since `revoked_at`.",
    "UZ-APIKEY-007": "Make a new key (`sexton keys create`). That a revoked key stays revoked is what makes revoking safe.",
    "UZ-APIKEY-008": "Revoke it (`sexton keys revoke NAME`), see that nothing breaks, then delete it.",
    "UZ-MEMBER-001": "`sexton member list` shows the members and their ids. Somebody who has never signed in is invited first: `sexton member invite`.",
    "UZ-MEMBER-002": "Make somebody else an admin first (`sexton member role NAME admin`), then repeat this.",
    "UZ-MEMBER-003": "Look in `sexton member list`; a removed member is let in again with `sexton member invite` and its id. A subject belongs to one tenant only: use another account for a second tenant.",
    "UZ-WORKSPACE-001": "`sexton workspace list` shows the workspaces that you may see, and `sexton workspace use NAME` chooses one. A workspace of another tenant looks just like one that is not there.",
    "UZ-WORKSPACE-002": "Let it go on with `sexton workspace resume`. Somebody paused it on purpose: `sexton audit list` tells who.",
    "UZ-WORKSPACE-003": "Delete what you do not need, or go over to a larger plan. Whoever runs the server sets the limits in `billing.toml`.",
    "UZ-WORKSPACE-004": "Choose another name, or use the one that is there: `sexton workspace use NAME`.",
    "UZ-BILLING-001": "Copy the subscription's id from the payment provider: `sub_`, then 3 to 255 letters, digits or underscores. An id of a customer (`cus_`) or a price (`price_`) is not it.",
    "UZ-BILLING-002": "This cannot come from a request: a row of the database is missing. As the operator, restore it from a backup, or write a billing event for the tenant, and find out who removed it.",
    "UZ-BILLING-003": "This cannot come from a request: rows of the database contradict one another. As the operator, read `detail`, and set the plan again with a billing event; keep hands and scripts off these tables.",
    "UZ-BILLING-004": "Send one of the event types that `detail` lists, in capitals.",
    "UZ-BILLING-005": "Add credit: `sexton billing credit DOLLARS` as a platform admin, or ask whoever runs the server. `sexton billing balance` shows what is left and `sexton billing charges` where it went. What was blocked because the money was gone starts by itself once there is credit; an event that failed is done again with `sexton event replay`.",
    "UZ-TENANT-001": "Compare the id with that in `sexton whoami` of somebody of that tenant.",
    "UZ-SCORING-001": "Send a whole number from 512 to 8192, not a text.",
    "UZ-RETENTION-001": "`sexton retention preview` counts them. Export what you need: `sexton billing charges` for charges, `sexton event list --json` for events. Then send the same again with `drop_charged` (`sexton retention set … --drop-charged`), or choose more days. With `--archive` a server archives such events before they go, and refuses nothing. The sums of what was charged stay in any case.",
    "UZ-ENTL-001": "Try again after `Retry-After`; it passes by itself when the database answers again. Nothing was done.",
    "UZ-ENTL-003": "The count begins again at midnight UTC, which is what `Retry-After` says. Until then raise the plan, or filter what wakes the agents. Whoever runs the server sets `events_per_day` in `billing.toml`.",
    "UZ-ENTL-004": "Take the tool or runtime that `detail` names out of the agent's files, or go over to a plan that has it. Whoever runs the server sets `tools` and `runtimes` in `billing.toml`.",
    "UZ-ENTL-005": "Delete some of what `limit` names, or go over to a larger plan. Whoever runs the server sets the limits in `billing.toml`.",
    "UZ-RUNS-410": "Send the work to an agent: `POST …/zombies/{zombie_id}/messages`, or `sexton event send`. The events of the agent take the place of runs.",
    "UZ-CATALOGUE-001": "Agents without a model work; only prices cannot be shown. Whoever runs the server lists models and prices in `catalogue.json` (`--catalogue`).",
    "UZ-WH-001": "Copy the address again: `sexton webhook list` shows it for each agent. If the agent was deleted and installed again it has a new id, so enter the new address at the sender.",
    "UZ-WH-002": "Let the sender send JSON (GitHub and Slack may also send a form with `payload`), in UTF-8 and uncompressed. `sexton webhook deliveries --verdict refused` lists what came, and `sexton webhook show DELIVERY --body` shows it byte by byte.",
    "UZ-WH-003": "Resume the agent with `sexton agent resume NAME`. Then do the delivery again: `sexton webhook replay DELIVERY`, or send it again at the sender.",
    "UZ-WH-004": "Killing is for good. Remove the webhook at the sender, or install the agent again and enter its new address there.",
    "UZ-WH-010": "Enter the same secret on both sides: at the sender, and here with `sexton credentials set NAME --field webhook_secret`. See that nothing between them rewrites the body. `sexton webhook send AGENT` sends a delivery that is signed rightly, and `POST …/webhooks:verify` says what of a sample does not fit.",
    "UZ-WH-011": "Set the clocks of both machines (NTP). A delivery that was kept back, or is replayed by hand with its old signature, is refused on purpose: have the sender sign it again. The trigger's `tolerance_seconds` may be up to 3600.",
    "UZ-WH-020": "Keep the secret in the credential that the trigger names: `sexton credentials set NAME --field webhook_secret`. If `detail` speaks of the address, copy it again from `sexton webhook list`. Then replay the delivery: `sexton webhook replay DELIVERY`.",
    "UZ-WH-030": "Have the sender send less: fewer events at once, or a reference in place of the content. The bound of 1 MiB is fixed.",
    "UZ-WH-040": "`sexton webhook deliveries` lists those of the last seven days. For an older one have the sender send it again.",
    "UZ-WH-041": "If `detail` names an event, read its request: `sexton event show EVENT`. Otherwise have the sender send it again; GitHub, Stripe and others have a button for that. The operator's bound for kept bodies is `--webhook-bodies`.",
    "UZ-ZMB-001": "Wait for the next day (UTC) or month, or raise `budget` in `TRIGGER.md` and run `sexton agent update`. First see what it was spent on: `sexton billing charges`. `Retry-After` says when the budget begins again.",
    "UZ-ZMB-002": "Give the agent less to do for each event, or more time: `resources.wall` in `TRIGGER.md`, up to what the runner allows (`--run-most`). `sexton event transcript EVENT` shows what took so long. Then `sexton event replay EVENT`.",
    "UZ-ZMB-003": "Keep it: `sexton credentials set NAME`. A user's agent also needs an operator's word that it may use it (`sexton credentials grants list`). Then `sexton event replay EVENT`, or send the message again.",
    "UZ-ZMB-004": "Replay the event (`sexton event replay EVENT`), which gives it to any runner that fits. If it comes again from one runner, look at that runner's log and cordon it meanwhile: `sexton runner cordon NAME`.",
    "UZ-ZMB-005": "Replay the event (`sexton event replay EVENT`): it starts afresh, without the checkpoint. If all runners are of one release this should not happen again; report it if it does.",
    "UZ-ZMB-006": "To change that agent use `sexton agent update DIR`. To have a second one, write another `name` into its files.",
    "UZ-ZMB-008": "Run `sexton agent check DIR`: it needs no server and lists every fault with file, line, key and what to write instead. `errors` of the answer holds the same list. `sexton agent init` writes files that are right to begin with.",
    "UZ-ZMB-009": "`sexton agent list` shows the agents of the workspace; see that the right workspace is in use (`sexton workspace use`). An agent that was installed again has a new id.",
    "UZ-ZMB-010": "Read `current_state`. `sexton agent resume NAME` starts a stopped or paused agent again; a killed one stays killed and can only be deleted and installed again.",
    "UZ-ZMB-011": "Write the same `name` in both files, or leave it out of `TRIGGER.md`; then `sexton agent check DIR`.",
    "UZ-ZMB-012": "Resume it with `sexton agent resume NAME`, then send again. If nobody stopped it, the platform paused it after a gate rule: `sexton agent status NAME` says which.",
    "UZ-EVENT-001": "`sexton events list` shows the events with their ids. An id that the sender of a webhook gave (`source_event_id`) is another one: find the event by a filter. Events of a deleted agent are gone with it.",
    "UZ-EVENT-002": "Wait for `Retry-After` and send again, more slowly. `sexton workspace queue` says why events wait: most often there is no runner with the labels that the agent asks for, or too few slots. What nobody wants any more is cancelled with `sexton events cancel`. `bound` names the bound; the operator's options are `--max-waiting-agent`, `--max-waiting-workspace` and `--max-waiting-age`.",
    "UZ-APPLY-001": "Run `sexton workspace apply` again: it reads what is there now. With `--diff` look first at what somebody else has changed.",
    "UZ-APPLY-002": "Wait until the other `sexton workspace apply` is done and run yours again. In CI let one job at a time apply to a workspace. One that has died gives way by itself after its time.",
    "UZ-ERASURE-001": "`sexton erasures list` shows the erasures of the workspace; they are kept for good.",
    "UZ-ERASURE-002": "Wait until one is over (`sexton erasures wait ID`), or stop one with `sexton erasures stop ID`. One that waits for events to end tells how many rows it waits for: cancel those events with `sexton event cancel`.",
    "UZ-JOB-001": "`sexton jobs list` shows the jobs of the workspace in use.",
    "UZ-JOB-002": "See what runs with `sexton jobs list`, then wait (`sexton jobs wait`) or stop one (`sexton jobs stop`). One job with a wider filter does the work of many.",
    "UZ-FAILURE-001": "`sexton failures list` shows the groups. One whose failures are no longer kept is gone.",
    "UZ-FILE-001": "`sexton files list EVENT` shows the files of an event. Files are kept for the days of `--files-keep`; to have it again, replay the event.",
    "UZ-FILE-002": "Delete files that nobody needs (`sexton files delete`); their room is free within the hour. The operator may raise `--files-quota`, or keep files for fewer days (`--files-keep`).",
    "UZ-FILE-003": "Leave one archive in place of many files. As a program that uploads: use uploads that you have begun before you begin others; those that nobody uses end after an hour.",
    "UZ-FILE-004": "Make it smaller, by compression or in parts. The operator's bound for files of runs is `--max-file`.",
    "UZ-FILE-005": "Go on at the byte that `received` names. Each part but the last is a whole multiple of 262,144 bytes. The client libraries do this for you.",
    "UZ-FILE-006": "Begin the upload again, with the length and SHA-256 of the file as it is now: it may have changed while it was sent.",
    "UZ-FILE-007": "Give the second file another name. The first one stays as it is.",
    "UZ-FILE-008": "Begin the upload again. One that gets no part for an hour is given up, and nobody sees another's uploads.",
    "UZ-FILE-009": "Ask for a range within the length that `Content-Range` tells. If you were resuming a download, you have the whole file already.",
    "UZ-FILE-010": "The work is done; only files are missing. Read the event's text for which and why (`sexton event show EVENT`), make room or leave fewer files, then replay it if you need them.",
    "UZ-FILE-011": "Have the agent start from an empty folder: `sexton workspace-files reset AGENT`. Then `sexton event replay EVENT`. What the folder held has to be made again by the run, such as a clone.",
    "UZ-FILE-012": "The work is done; the next run starts from the folder as it was before. Read the event's text for the reason. Let the agent tidy up at its end, or have less kept (`workspace` in `TRIGGER.md`).",
    "UZ-FILE-013": "Try again later: nothing is lost or deleted. As the operator, read the status in `detail`: 403 is about the key's rights, 404 about the bucket, no answer about `--s3-endpoint` or the network.",
    "UZ-FILE-014": "Send the message again with its files. Those of an event are kept as long as those of runs (`--files-keep`). If they are too large for the run, give it more disk: `resources.disk` in `TRIGGER.md`.",
    "UZ-SCHEDULE-001": "`sexton schedule list` shows the schedules with their ids. Other times in `TRIGGER.md` make another schedule with another id.",
    "UZ-FOLLOWUP-001": "List the follow-ups of the agent again: it may have been purged with its agent.",
    "UZ-AGENT-001": "`sexton proposals list AGENT` shows the proposals, and `sexton agent list` the agents of the workspace in use.",
    "UZ-AGENT-002": "Nothing is left to decide; `outcome`, `decided_by` and `decided_at` say what became of it. To undo one that was applied use `sexton agent roll-back`.",
    "UZ-HARNESS-001": "`sexton agent versions NAME` shows the versions that are there.",
    "UZ-HARNESS-002": "Compile it first (`POST …/harness/compile`). If it is `INVALID`, `errors` lists what is wrong in its files: mend them and keep them as a new draft.",
    "UZ-HARNESS-003": "Let the event go with the active version, or give the version what it lacks: approve the credential's grant (`sexton credentials grants approve`), or activate it where it needs another runner. `sexton agent versions NAME` shows what is there.",
    "UZ-HARNESS-004": "Let the agent go with `sexton agent unpin NAME`, or make the other version the active one first (`sexton agent roll-back`) and pin that. `sexton agent show NAME` tells who pinned it and why: ask them before you undo it.",
    "UZ-SHADOW-001": "Nothing is wrong: a shadow repeats a saved event under other files, and keeps, lends and sends nothing. `sexton agent shadow report JOB` shows what came of it. To have it take effect, make the version the active one and run `sexton event replay EVENT`.",
    "UZ-TOOL-004": "Add the tool to `tools` in `TRIGGER.md` and run `sexton agent update DIR`, if the agent is to have it. A model that calls it without is told so and goes on.",
    "UZ-TOOL-005": "Write the name as the page of tools has it, such as `shell`. `sexton agent check DIR` suggests the nearest.",
    "UZ-GRANT-001": "Ask for it: `sexton grants request AGENT SERVICE --reason TEXT`; an operator approves it with `sexton grants approve`. Then try again.",
    "UZ-GRANT-002": "An operator decides: `sexton grants list --agent AGENT`, then `sexton grants approve`. Then replay the event.",
    "UZ-GRANT-003": "Somebody said no on purpose: ask them. A new request (`sexton grants request`) puts the question again.",
    "UZ-GATE-001": "Read the check's output in `sexton event transcript EVENT`. Mend what it found, or the check itself in `gates.checks`, and replay the event.",
    "UZ-GATE-002": "Raise the check's `timeout_s` in `gates.checks`, or let it do less; then `sexton agent update DIR` and replay the event.",
    "UZ-GATE-003": "The agent tried and could not. Read what the check said each time (`sexton event transcript EVENT`), tell the agent more in `SKILL.md`, or do it by hand. More tries are given by `repair_attempts` of the check.",
    "UZ-APPROVAL-001": "Mend the place that `detail` names; `sexton agent check DIR` shows all of them at once, without a server.",
    "UZ-APPROVAL-002": "`sexton approvals list --status all` shows what became of it: somebody may have answered, or its time is over. A run whose gate timed out is replayed.",
    "UZ-APPROVAL-003": "Enter the chat platform's signing secret at the server as the page on Slack says, and see that the clocks agree. `reason` says which of the two it is.",
    "UZ-APPROVAL-004": "What cannot be asked is not done. See that the database answers (`/readyz`), then decide again, or replay the event.",
    "UZ-APPROVAL-005": "Write the condition like `branch == 'main' and event != 'push'`: fields, `==` or `!=`, values in single quotes, `and`, `or`. `sexton agent check DIR` shows the character at which it stops.",
    "UZ-APPROVAL-006": "Ask a colleague, or an operator, to answer it: `sexton approvals show` gives them the id. That nobody approves their own work is the purpose of the gate.",
    "UZ-CRED-001": "Keep the key of the provider: `sexton credentials llm set PROVIDER`. If the agent names a credential of its own, put `api_key` into that one. Then replay the event.",
    "UZ-CRED-003": "Give the workspace a key of its own (`sexton credentials llm set PROVIDER`), name another provider in `TRIGGER.md`, or ask a platform admin to add a key for all (`sexton platform-key set`).",
    "UZ-VAULT-001": 'Send `data` as an object, such as `{"token": "…"}`: `sexton credentials set NAME --field token` makes it for you.',
    "UZ-VAULT-002": "Keep only what is secret, and put the rest into the agent's files. A long certificate chain goes into a credential of its own.",
    "UZ-MCP-001": "`sexton mcp-server list` shows them; remove one that no agent names (`sexton mcp-server remove NAME`).",
    "UZ-PROVIDER-001": "Keep the credential first (`sexton credentials set NAME`, with `provider`, `api_key` and `model`), then name it in `credential_ref`.",
    "UZ-PROVIDER-002": "`sexton credentials list` shows the names of the workspace in use; write one of them, letter by letter, or keep a new one.",
    "UZ-PROVIDER-003": "Set the credential again with all of `provider`, `api_key` and `model`: `missing` names what it lacks.",
    "UZ-PROVIDER-004": "`sexton model list` shows the models. For one that is not there use a credential of your own (self-managed), or have the operator add it to `catalogue.json`.",
    "UZ-PROVIDER-005": "`sexton platform-key list` lists the entries; write the provider as it stands there.",
    "UZ-MEM-001": "Use the key of this very agent. A runner reaches an agent's memory only while it holds a lease of it.",
    "UZ-MEM-002": "`sexton agent list` shows the agents and their ids. Memory goes with its agent when that is deleted.",
    "UZ-MEM-003": "Try again after `Retry-After`; it passes when the database answers again. A run goes on without.",
    "UZ-RELAY-001": "Give the workspace a key: `sexton credentials llm set PROVIDER`. Without a server, `sexton agent run DIR` tries an agent as well.",
    "UZ-CHATPLUGIN-001": "Open the install link again, in the browser in which you are signed in here, and finish within some minutes.",
    "UZ-CHATPLUGIN-002": "Open the install link again and allow the app. If it fails again, compare client id, secret and redirect URL with the app's settings at the platform.",
    "UZ-CHATPLUGIN-003": "Somebody removed the app from the chat. Install it again from the workspace's install link; gates that wait are posted then.",
    "UZ-RUN-001": "enrol the runner again: `sexton runner enrol` prints the command, which works once within the hour. See that it runs against this server and with its own data folder.",
    "UZ-RUN-005": "Stop this run and throw away its result: another runner has the event, or it is over. This is how two runs of one event are kept apart; nothing is to be mended. If it happens often, the runner is too slow to renew, or loses its network.",
    "UZ-RUN-006": "Stop the run and ask for new work. A runner of your own must use the `lease_id` of the answer that gave it the work, with its own token.",
    "UZ-RUN-007": "Run `sexton doctor` on the runner's machine: it says what the sandbox lacks there. Where there are no user namespaces, start the runner with `--sandbox podman` or `--sandbox landlock`. Then replay the event.",
    "UZ-RUN-009": "Enrol it again with `sexton runner enrol`, if it is to work again; `sexton audit list` tells who revoked it. As its program: stop, do not ask again.",
    "UZ-RUN-010": "Split the work: an event may run for twelve hours, over all its leases. A run that waits for a person gives its slot back by parking. Replaying starts the twelve hours again.",
    "UZ-RUN-011": "Stop the run and throw away its result; another runner has the event. Renew every ten seconds, well before the thirty of a term. If it happens under load, give the runner fewer slots.",
    "UZ-RUN-012": "Stop the run and report it with `balance_exhausted`. People add credit with `sexton billing credit`; then the event is replayed.",
    "UZ-ACTOR-001": "`sexton actor tree` and `sexton fleet top` show the actors that are awake. An actor that nobody asked for some time sleeps, and wakes by itself with its next message; on several servers name the one that has it.",
    "UZ-ACTOR-002": "Use `sexton actor restart`: it is started again by its supervisor, with its state read again.",
    "UZ-ACTOR-003": "See whether that server is alive (`/healthz` at its own address) and of the same release. One that is gone is forgotten by itself; its agents wake on the others.",
    "UZ-RUN-014": "`sexton runner list` shows the runners of this server.",
    "UZ-RUN-015": "Have a new one made with `sexton runner enrol` and use it within the hour, once. A runner that is enrolled already keeps its token in its data folder and needs none.",
    "UZ-RUN-016": "Five runners died with the event, or the event killed them: look at their logs and at `sexton event transcript EVENT` for memory or disk. When the reason is mended, `sexton event replay EVENT`.",
    "UZ-RUN-017": "Leave the label out, or have a platform admin run `sexton runner enrol --label reserved:…` and enrol with that command.",
    "UZ-EXEC-001": "Replay the event (`sexton event replay EVENT`). If one runner fails again and again, look at its log, its disk and its memory, and cordon it meanwhile: `sexton runner cordon NAME`.",
    "UZ-EXEC-002": "Read the event's text and the runner's log. An MCP server that does not answer is named there. When it is mended, `sexton event replay EVENT`.",
    "UZ-EXEC-003": "Let the program do less for each event, or raise `resources.wall` in `TRIGGER.md`, up to what the operator allows (`--run-most`). `sexton event transcript EVENT` shows how far it came.",
    "UZ-EXEC-009": "The event was not begun, since it would not have been safe. Run `sexton doctor` on the runner's machine, build a missing image (`sexton image build`), see that its disk has room; then `sexton event replay EVENT`.",
    "UZ-EXEC-012": "Look at the key (`sexton credentials llm set PROVIDER`) and at the name of the model (`sexton model list`). `sexton agent run DIR` tries the agent on your own machine. Then replay the event.",
    "UZ-EXEC-013": "This is the agent's own failure: read its last words with `sexton event show EVENT`, and all of it with `sexton event transcript EVENT`. Change the agent's files, try them with `sexton agent run DIR`, update, and replay the event.",
    "UZ-EXEC-014": "Run `sexton agent check DIR` with the release of the runner, mend the files as the event's text says, then `sexton agent update DIR` and replay the event.",
}
"""What to do about each code."""
