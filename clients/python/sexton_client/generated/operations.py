"""The operations of the interface, made from the OpenAPI document by `make clients`."""

from sexton_client.messages import Operation

ABORT_AUTH_SESSION = Operation("abort_auth_session", "DELETE", "/v1/auth/sessions/{session_id}")
ABORT_AUTH_SESSIONS = Operation("abort_auth_sessions", "DELETE", "/v1/auth/sessions/all")
ACKNOWLEDGE_FAILURE = Operation(
    "acknowledge_failure", "POST", "/v1/workspaces/{workspace_id}/failures/{failure_id}:acknowledge"
)
ACTIVATE_HARNESS = Operation("activate_harness", "POST", "/v1/workspaces/{workspace_id}/harness/activate")
APPEND_TRANSCRIPT = Operation("append_transcript", "POST", "/v1/runners/me/leases/{lease_id}/transcript")
APPROVE = Operation("approve", "POST", "/v1/workspaces/{workspace_id}/approvals/{gate_id}:approve")
APPROVE_AUTH_SESSION = Operation("approve_auth_session", "PATCH", "/v1/auth/sessions/{session_id}/approve")
APPROVE_PROPOSAL = Operation(
    "approve_proposal", "POST", "/v1/agents/{agent_id}/proposals/{proposal_id}:approve"
)
AWAIT_GATE = Operation("await_gate", "GET", "/v1/runners/me/leases/{lease_id}/gates/{gate_id}")
BEAT = Operation("beat", "POST", "/v1/runners/me/heartbeats")
BEGIN_ERASURE = Operation("begin_erasure", "POST", "/v1/workspaces/{workspace_id}/erasures", keyed=True)
BEGIN_UPLOAD = Operation("begin_upload", "POST", "/v1/runners/me/leases/{lease_id}/uploads")
BEGIN_WORKSPACE_UPLOAD = Operation("begin_workspace_upload", "POST", "/v1/workspaces/{workspace_id}/uploads")
CANCEL_EVENT = Operation(
    "cancel_event", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}/cancel"
)
CANCEL_EVENTS = Operation("cancel_events", "POST", "/v1/workspaces/{workspace_id}/events:cancel", keyed=True)
CANCEL_FOLLOW_UP = Operation(
    "cancel_follow_up",
    "DELETE",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/follow-ups/{follow_up_id}",
)
CANCEL_WORKSPACE_EVENT = Operation(
    "cancel_workspace_event", "POST", "/v1/workspaces/{workspace_id}/events/{event_id}/cancel"
)
CHANGE_API_KEY = Operation("change_api_key", "PATCH", "/v1/api-keys/{key_id}")
CHANGE_CREDENTIAL_GRANT = Operation(
    "change_credential_grant",
    "PATCH",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/credential-grants/{credential}",
)
CHANGE_GRANT = Operation(
    "change_grant", "PATCH", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/integration-grants/{grant_id}"
)
CHANGE_MEMBER = Operation("change_member", "PATCH", "/v1/members/{member_id}")
CHANGE_RUNNER = Operation("change_runner", "PATCH", "/v1/fleet/runners/{runner_id}")
CHANGE_WORKSPACE = Operation("change_workspace", "PATCH", "/v1/workspaces/{workspace_id}")
CHANGE_ZOMBIE = Operation("change_zombie", "PATCH", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}")
COMPARE_CREDENTIAL = Operation(
    "compare_credential", "POST", "/v1/workspaces/{workspace_id}/credentials/{name}:compare"
)
COMPILE_HARNESS = Operation("compile_harness", "POST", "/v1/workspaces/{workspace_id}/harness/compile")
COMPLETE_AUTH_SESSION = Operation("complete_auth_session", "PATCH", "/v1/auth/sessions/{session_id}")
CREATE_AGENT_KEY = Operation(
    "create_agent_key", "POST", "/v1/workspaces/{workspace_id}/agent-keys", keyed=True
)
CREATE_API_KEY = Operation("create_api_key", "POST", "/v1/api-keys", keyed=True)
CREATE_AUTH_SESSION = Operation("create_auth_session", "POST", "/v1/auth/sessions", keyed=True)
CREATE_MEMBER = Operation("create_member", "POST", "/v1/members", keyed=True)
CREATE_PROPOSAL = Operation("create_proposal", "POST", "/v1/agents/{agent_id}/proposals", keyed=True)
CREATE_SIGN_IN = Operation("create_sign_in", "POST", "/v1/auth/sign-ins", keyed=True)
CREATE_WORKSPACE = Operation("create_workspace", "POST", "/v1/workspaces", keyed=True)
CREDIT_TENANT = Operation("credit_tenant", "POST", "/v1/admin/tenants/{tenant_id}/credit", keyed=True)
DECIDE_BY_WEBHOOK = Operation("decide_by_webhook", "POST", "/v1/webhooks/{zombie_id}/approval")
DECIDE_GRANT_BY_WEBHOOK = Operation(
    "decide_grant_by_webhook", "POST", "/v1/webhooks/{zombie_id}/grant-approval"
)
DELETE_AGENT_KEY = Operation(
    "delete_agent_key", "DELETE", "/v1/workspaces/{workspace_id}/agent-keys/{key_id}"
)
DELETE_API_KEY = Operation("delete_api_key", "DELETE", "/v1/api-keys/{key_id}")
DELETE_ARTEFACT = Operation(
    "delete_artefact", "DELETE", "/v1/workspaces/{workspace_id}/artefacts/{artefact_id}"
)
DELETE_CREDENTIAL = Operation(
    "delete_credential", "DELETE", "/v1/workspaces/{workspace_id}/credentials/{name}"
)
DELETE_LLM_KEY = Operation("delete_llm_key", "DELETE", "/v1/workspaces/{workspace_id}/credentials/llm")
DELETE_MCP_SERVER = Operation(
    "delete_mcp_server", "DELETE", "/v1/workspaces/{workspace_id}/mcp-servers/{name}"
)
DELETE_PLATFORM_KEY = Operation("delete_platform_key", "DELETE", "/v1/admin/platform-keys/{provider}")
DELETE_TENANT_PROVIDER = Operation("delete_tenant_provider", "DELETE", "/v1/tenants/me/provider")
DELETE_ZOMBIE = Operation("delete_zombie", "DELETE", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}")
DENY = Operation("deny", "POST", "/v1/workspaces/{workspace_id}/approvals/{gate_id}:deny")
DESCRIBE_SELF = Operation("describe_self", "GET", "/v1/runners/me")
END_SESSION = Operation("end_session", "DELETE", "/v1/sessions/{session_id}")
END_SESSIONS = Operation("end_sessions", "DELETE", "/v1/sessions")
END_SIGN_IN = Operation("end_sign_in", "DELETE", "/v1/auth/sign-ins/{sign_in_id}")
ENROL_RUNNER = Operation("enrol_runner", "POST", "/v1/runners", keyed=True)
EXPLAIN_WORKSPACE_EVENT = Operation(
    "explain_workspace_event", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}/why"
)
EXPLAIN_ZOMBIE_EVENT = Operation(
    "explain_zombie_event", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}/why"
)
EXPORT_AUDIT = Operation("export_audit", "GET", "/v1/audit/export")
EXPORT_CHARGES = Operation("export_charges", "GET", "/v1/tenants/me/billing/charges/export")
EXPORT_EVENTS = Operation("export_events", "GET", "/v1/workspaces/{workspace_id}/events/export")
EXPORT_PLATFORM_AUDIT = Operation("export_platform_audit", "GET", "/v1/admin/audit/export")
FORGET_MEMORY = Operation(
    "forget_memory", "DELETE", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/memories"
)
GET_AGENT_PROFILE = Operation("get_agent_profile", "GET", "/v1/agents/{agent_id}")
GET_APPLIED = Operation("get_applied", "GET", "/v1/workspaces/{workspace_id}/applied")
GET_APPROVAL = Operation("get_approval", "GET", "/v1/workspaces/{workspace_id}/approvals/{gate_id}")
GET_ARTEFACT = Operation("get_artefact", "GET", "/v1/workspaces/{workspace_id}/artefacts/{artefact_id}")
GET_AUTH_SESSION = Operation("get_auth_session", "GET", "/v1/auth/sessions/{session_id}")
GET_BALANCE = Operation("get_balance", "GET", "/v1/tenants/me/billing")
GET_CANARY = Operation("get_canary", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/canary")
GET_DELIVERY = Operation(
    "get_delivery", "GET", "/v1/workspaces/{workspace_id}/webhook-deliveries/{delivery_id}"
)
GET_ERASURE = Operation("get_erasure", "GET", "/v1/workspaces/{workspace_id}/erasures/{erasure_id}")
GET_EVENT_TRACE = Operation("get_event_trace", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}/trace")
GET_FAILURE = Operation("get_failure", "GET", "/v1/workspaces/{workspace_id}/failures/{failure_id}")
GET_HARNESS_VERSION = Operation(
    "get_harness_version", "GET", "/v1/workspaces/{workspace_id}/harness/versions/{config_version_id}"
)
GET_JOB = Operation("get_job", "GET", "/v1/workspaces/{workspace_id}/jobs/{job_id}")
GET_LLM_KEY = Operation("get_llm_key", "GET", "/v1/workspaces/{workspace_id}/credentials/llm")
GET_PLAN = Operation("get_plan", "GET", "/v1/workspaces/{workspace_id}/billing")
GET_PLATFORM_KEY = Operation("get_platform_key", "GET", "/v1/admin/platform-keys/{provider}")
GET_PROPOSAL = Operation("get_proposal", "GET", "/v1/agents/{agent_id}/proposals/{proposal_id}")
GET_QUEUE = Operation("get_queue", "GET", "/v1/workspaces/{workspace_id}/queue")
GET_RETENTION = Operation("get_retention", "GET", "/v1/workspaces/{workspace_id}/retention")
GET_SCHEDULE = Operation(
    "get_schedule", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/schedules/{schedule_id}"
)
GET_SCORING = Operation("get_scoring", "GET", "/v1/workspaces/{workspace_id}/scoring")
GET_SHADOW = Operation("get_shadow", "GET", "/v1/workspaces/{workspace_id}/jobs/{job_id}/shadow")
GET_TENANT_PROVIDER = Operation("get_tenant_provider", "GET", "/v1/tenants/me/provider")
GET_THROUGHPUT = Operation("get_throughput", "GET", "/v1/workspaces/{workspace_id}/throughput")
GET_WORKSPACE = Operation("get_workspace", "GET", "/v1/workspaces/{workspace_id}")
GET_WORKSPACE_EVENT = Operation(
    "get_workspace_event", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}"
)
GET_WORKSPACE_TRANSCRIPT = Operation(
    "get_workspace_transcript", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}/transcript"
)
GET_ZOMBIE = Operation("get_zombie", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}")
GET_ZOMBIE_EVENT = Operation(
    "get_zombie_event", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}"
)
GET_ZOMBIE_TRANSCRIPT = Operation(
    "get_zombie_transcript",
    "GET",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}/transcript",
)
HEALTHZ = Operation("healthz", "GET", "/healthz")
INSTALL_ZOMBIE = Operation("install_zombie", "POST", "/v1/workspaces/{workspace_id}/zombies", keyed=True)
INVITE_MEMBER = Operation("invite_member", "POST", "/v1/members/{member_id}/invitation", keyed=True)
JWKS = Operation("jwks", "GET", "/.well-known/jwks.json")
KEEP_ARTEFACT = Operation("keep_artefact", "POST", "/v1/runners/me/leases/{lease_id}/artefacts")
KEEP_MEMORY = Operation("keep_memory", "POST", "/v1/runners/me/memory/{zombie_id}")
KEEP_WORKSPACE = Operation("keep_workspace", "PUT", "/v1/runners/me/leases/{lease_id}/workspace")
LEND_INTEGRATION = Operation(
    "lend_integration", "POST", "/v1/runners/me/leases/{lease_id}/integrations/{service}"
)
LIST_ACTOR_MESSAGES = Operation("list_actor_messages", "GET", "/v1/fleet/actors/{kind}/messages")
LIST_AGENT_KEYS = Operation("list_agent_keys", "GET", "/v1/workspaces/{workspace_id}/agent-keys")
LIST_AGENT_SCORES = Operation("list_agent_scores", "GET", "/v1/agents/{agent_id}/scores")
LIST_API_KEYS = Operation("list_api_keys", "GET", "/v1/api-keys")
LIST_APPROVALS = Operation("list_approvals", "GET", "/v1/workspaces/{workspace_id}/approvals")
LIST_ARTEFACTS = Operation(
    "list_artefacts", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}/artefacts"
)
LIST_AUDIT = Operation("list_audit", "GET", "/v1/audit")
LIST_CHARGES = Operation("list_charges", "GET", "/v1/tenants/me/billing/charges")
LIST_CREDENTIAL_GRANTS = Operation(
    "list_credential_grants", "GET", "/v1/workspaces/{workspace_id}/credential-grants"
)
LIST_CREDENTIALS = Operation("list_credentials", "GET", "/v1/workspaces/{workspace_id}/credentials")
LIST_DELIVERIES = Operation("list_deliveries", "GET", "/v1/workspaces/{workspace_id}/webhook-deliveries")
LIST_ERASURES = Operation("list_erasures", "GET", "/v1/workspaces/{workspace_id}/erasures")
LIST_EVENT_FRAMES = Operation(
    "list_event_frames", "GET", "/v1/workspaces/{workspace_id}/events/{event_id}/frames"
)
LIST_FAILURES = Operation("list_failures", "GET", "/v1/workspaces/{workspace_id}/failures")
LIST_FOLLOW_UPS = Operation(
    "list_follow_ups", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/follow-ups"
)
LIST_HARNESS_VERSIONS = Operation(
    "list_harness_versions", "GET", "/v1/workspaces/{workspace_id}/harness/versions"
)
LIST_JOBS = Operation("list_jobs", "GET", "/v1/workspaces/{workspace_id}/jobs")
LIST_LIVE_LEASES = Operation("list_live_leases", "GET", "/v1/fleet/leases")
LIST_MCP_SERVERS = Operation("list_mcp_servers", "GET", "/v1/workspaces/{workspace_id}/mcp-servers")
LIST_MEMBERS = Operation("list_members", "GET", "/v1/members")
LIST_MEMORIES = Operation(
    "list_memories", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/memories"
)
LIST_METERING_PERIODS = Operation(
    "list_metering_periods", "GET", "/v1/tenants/me/billing/charges/{event_id}/metering-periods"
)
LIST_MODELS = Operation("list_models", "GET", "/v1/models")
LIST_PLATFORM_AUDIT = Operation("list_platform_audit", "GET", "/v1/admin/audit")
LIST_PLATFORM_KEYS = Operation("list_platform_keys", "GET", "/v1/admin/platform-keys")
LIST_PROPOSALS = Operation("list_proposals", "GET", "/v1/agents/{agent_id}/proposals")
LIST_RUNNER_EVENTS = Operation("list_runner_events", "GET", "/v1/fleet/runners/{runner_id}/events")
LIST_RUNNERS = Operation("list_runners", "GET", "/v1/fleet/runners")
LIST_SCHEDULES = Operation("list_schedules", "GET", "/v1/workspaces/{workspace_id}/schedules")
LIST_SESSIONS = Operation("list_sessions", "GET", "/v1/sessions")
LIST_SETTINGS = Operation("list_settings", "GET", "/v1/admin/settings")
LIST_SIGN_INS = Operation("list_sign_ins", "GET", "/v1/auth/sign-ins")
LIST_WEBHOOKS = Operation("list_webhooks", "GET", "/v1/workspaces/{workspace_id}/webhooks")
LIST_WORKSPACE_AUDIT = Operation("list_workspace_audit", "GET", "/v1/workspaces/{workspace_id}/audit")
LIST_WORKSPACE_EVENTS = Operation("list_workspace_events", "GET", "/v1/workspaces/{workspace_id}/events")
LIST_WORKSPACE_GRANTS = Operation(
    "list_workspace_grants", "GET", "/v1/workspaces/{workspace_id}/integration-grants"
)
LIST_WORKSPACES = Operation("list_workspaces", "GET", "/v1/tenants/me/workspaces")
LIST_ZOMBIE_EVENTS = Operation(
    "list_zombie_events", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events"
)
LIST_ZOMBIE_GRANTS = Operation(
    "list_zombie_grants", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/integration-grants"
)
LIST_ZOMBIES = Operation("list_zombies", "GET", "/v1/workspaces/{workspace_id}/zombies")
METRICS = Operation("metrics", "GET", "/metrics")
MINT_ENROLMENT_TOKEN = Operation("mint_enrolment_token", "POST", "/v1/fleet/enrolment-tokens", keyed=True)
MUTE_FAILURE = Operation("mute_failure", "POST", "/v1/workspaces/{workspace_id}/failures/{failure_id}:mute")
OPEN_GATE = Operation("open_gate", "POST", "/v1/runners/me/leases/{lease_id}/gates", keyed=True)
OPENAPI = Operation("openapi", "GET", "/openapi.json")
PARK_LEASE = Operation("park_lease", "POST", "/v1/runners/me/leases/{lease_id}/park")
PAUSE_JOB = Operation("pause_job", "POST", "/v1/workspaces/{workspace_id}/jobs/{job_id}:pause")
PAUSE_SCHEDULE = Operation(
    "pause_schedule",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/schedules/{schedule_id}:pause",
)
PIN_AGENT = Operation("pin_agent", "PUT", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/pin")
POLL_LEASES = Operation("poll_leases", "POST", "/v1/runners/me/leases")
PREVIEW_RETENTION = Operation("preview_retention", "GET", "/v1/workspaces/{workspace_id}/retention/preview")
PROBE_CHAT = Operation("probe_chat", "POST", "/v1/workspaces/{workspace_id}/chat/slack/test")
PROMOTE_CANARY = Operation(
    "promote_canary", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/canary/promote"
)
PUT_APPLIED = Operation("put_applied", "PUT", "/v1/workspaces/{workspace_id}/applied")
PUT_CREDENTIAL = Operation("put_credential", "POST", "/v1/workspaces/{workspace_id}/credentials", keyed=True)
PUT_HARNESS_SOURCE = Operation("put_harness_source", "PUT", "/v1/workspaces/{workspace_id}/harness/source")
PUT_LLM_KEY = Operation("put_llm_key", "PUT", "/v1/workspaces/{workspace_id}/credentials/llm")
PUT_MCP_SERVER = Operation("put_mcp_server", "PUT", "/v1/workspaces/{workspace_id}/mcp-servers/{name}")
PUT_NAMED_PLATFORM_KEY = Operation("put_named_platform_key", "PUT", "/v1/admin/platform-keys/{provider}")
PUT_PLATFORM_KEY = Operation("put_platform_key", "PUT", "/v1/admin/platform-keys")
PUT_RETENTION = Operation("put_retention", "PUT", "/v1/workspaces/{workspace_id}/retention")
PUT_SCORING = Operation("put_scoring", "PUT", "/v1/workspaces/{workspace_id}/scoring")
PUT_TENANT_PROVIDER = Operation("put_tenant_provider", "PUT", "/v1/tenants/me/provider")
READ_ARTEFACT = Operation(
    "read_artefact", "GET", "/v1/workspaces/{workspace_id}/artefacts/{artefact_id}/content"
)
READ_DELIVERY_BODY = Operation(
    "read_delivery_body", "GET", "/v1/workspaces/{workspace_id}/webhook-deliveries/{delivery_id}/body"
)
READ_EVENT_FILE = Operation("read_event_file", "GET", "/v1/runners/me/leases/{lease_id}/files/content")
READ_WORKSPACE = Operation("read_workspace", "GET", "/v1/runners/me/leases/{lease_id}/workspace/content")
READYZ = Operation("readyz", "GET", "/readyz")
RECALL_MEMORIES = Operation("recall_memories", "GET", "/v1/runners/me/memory/{zombie_id}")
REJECT_PROPOSAL = Operation("reject_proposal", "POST", "/v1/agents/{agent_id}/proposals/{proposal_id}:reject")
RELEASE_LEASE = Operation("release_lease", "POST", "/v1/runners/me/leases/{lease_id}/release")
REMOVE_MEMBER = Operation("remove_member", "DELETE", "/v1/members/{member_id}")
RENEW_LEASE = Operation("renew_lease", "POST", "/v1/runners/me/leases/{lease_id}/renew")
RENEW_LEASES = Operation("renew_leases", "POST", "/v1/runners/me/leases:renew")
RENEW_TOKEN = Operation("renew_token", "POST", "/v1/auth/tokens")
REPLAY_DELIVERY = Operation(
    "replay_delivery",
    "POST",
    "/v1/workspaces/{workspace_id}/webhook-deliveries/{delivery_id}:replay",
    keyed=True,
)
REPLAY_EVENT = Operation(
    "replay_event",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}/replay",
    keyed=True,
)
REPLAY_EVENTS = Operation("replay_events", "POST", "/v1/workspaces/{workspace_id}/events:replay", keyed=True)
REPLAY_FAILURE = Operation(
    "replay_failure", "POST", "/v1/workspaces/{workspace_id}/failures/{failure_id}:replay", keyed=True
)
REPLAY_WORKSPACE_EVENT = Operation(
    "replay_workspace_event", "POST", "/v1/workspaces/{workspace_id}/events/{event_id}/replay", keyed=True
)
REPORT_RUN = Operation("report_run", "POST", "/v1/runners/me/reports")
REPORT_RUNS = Operation("report_runs", "POST", "/v1/runners/me/reports:batch")
REQUEST_FROM_RUN = Operation(
    "request_from_run", "POST", "/v1/runners/me/leases/{lease_id}/integration-requests", keyed=True
)
REQUEST_INTEGRATION = Operation(
    "request_integration",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/integration-requests",
    keyed=True,
)
RESET_WORKSPACE_FILES = Operation(
    "reset_workspace_files", "DELETE", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/workspace-files"
)
RESTART_ACTOR = Operation("restart_actor", "POST", "/v1/fleet/actors/{kind}:restart")
RESUME_JOB = Operation("resume_job", "POST", "/v1/workspaces/{workspace_id}/jobs/{job_id}:resume")
RESUME_SCHEDULE = Operation(
    "resume_schedule",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/schedules/{schedule_id}:resume",
)
REVOKE_CREDENTIAL_GRANT = Operation(
    "revoke_credential_grant",
    "DELETE",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/credential-grants/{credential}",
)
REVOKE_GRANT = Operation(
    "revoke_grant",
    "DELETE",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/integration-grants/{grant_id}",
)
ROTATE_APPROVAL_TOKEN = Operation(
    "rotate_approval_token",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/approval-token",
    keyed=True,
)
ROTATE_VAULT = Operation("rotate_vault", "POST", "/v1/admin/vault/rotations", keyed=True)
RUN_SCHEDULE = Operation(
    "run_schedule",
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/schedules/{schedule_id}:run",
    keyed=True,
)
SCALE_PLAN = Operation("scale_plan", "POST", "/v1/workspaces/{workspace_id}/billing/scale", keyed=True)
SCHEDULE_FOLLOW_UP = Operation(
    "schedule_follow_up", "POST", "/v1/runners/me/leases/{lease_id}/follow-ups", keyed=True
)
SEND_PART = Operation("send_part", "PUT", "/v1/runners/me/leases/{lease_id}/uploads/{upload_id}")
SEND_WORKSPACE_PART = Operation(
    "send_workspace_part", "PUT", "/v1/workspaces/{workspace_id}/uploads/{upload_id}"
)
SHOW_ACTIVITY = Operation("show_activity", "POST", "/v1/runners/me/leases/{lease_id}/activity")
SHOW_CATALOGUE = Operation("show_catalogue", "GET", "/_um/{public_key}/cap.json")
SHOW_CHAT = Operation("show_chat", "GET", "/v1/workspaces/{workspace_id}/chat/slack")
SHOW_VAULT = Operation("show_vault", "GET", "/v1/admin/vault")
SHOW_WORKSPACE_FILES = Operation(
    "show_workspace_files", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/workspace-files"
)
START_CANARY = Operation("start_canary", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/canary")
START_SHADOW = Operation(
    "start_shadow", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/shadow", keyed=True
)
START_WORKSPACE = Operation("start_workspace", "POST", "/v1/runners/me/leases/{lease_id}/workspace")
STEER_ZOMBIE = Operation(
    "steer_zombie", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/messages", keyed=True
)
STOP_ACTOR = Operation("stop_actor", "POST", "/v1/fleet/actors/{kind}:stop")
STOP_ERASURE = Operation("stop_erasure", "POST", "/v1/workspaces/{workspace_id}/erasures/{erasure_id}:stop")
STOP_JOB = Operation("stop_job", "POST", "/v1/workspaces/{workspace_id}/jobs/{job_id}:stop")
STREAM_EVENTS = Operation(
    "stream_events", "GET", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/stream"
)
STREAM_WORKSPACE_EVENTS = Operation(
    "stream_workspace_events", "GET", "/v1/workspaces/{workspace_id}/events/stream"
)
TAKE_BILLING_EVENT = Operation(
    "take_billing_event", "POST", "/v1/workspaces/{workspace_id}/billing/events", keyed=True
)
TOTAL_CHARGES = Operation("total_charges", "GET", "/v1/tenants/me/billing/totals")
UNINSTALL_CHAT = Operation("uninstall_chat", "DELETE", "/v1/workspaces/{workspace_id}/chat/slack")
UNPIN_AGENT = Operation("unpin_agent", "DELETE", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/pin")
VERIFY_AUTH_SESSION = Operation("verify_auth_session", "POST", "/v1/auth/sessions/{session_id}/verify")
VERIFY_WEBHOOK = Operation(
    "verify_webhook", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/webhooks:verify"
)
VIEW_ACTOR = Operation("view_actor", "GET", "/v1/fleet/actors/{kind}")
VIEW_QUEUE = Operation("view_queue", "GET", "/v1/fleet/queue")
VIEW_SUPERVISOR = Operation("view_supervisor", "GET", "/v1/fleet/supervisor")
VIEW_TREE = Operation("view_tree", "GET", "/v1/fleet/tree")
WHOAMI = Operation("whoami", "GET", "/v1/whoami")
WITHDRAW_CANARY = Operation(
    "withdraw_canary", "POST", "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/canary/withdraw"
)
