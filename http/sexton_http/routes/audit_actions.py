"""What the audit log says of each route that changes something, and why it says nothing of the others."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sexton_http.gateway.audit_action import Audit
from sexton_http.gateway.operations import Auth, Operation

AUDITED: Final[Mapping[str, Audit]] = {
    # Agents.
    "install_zombie": Audit("agent.create"),
    "change_zombie": Audit("agent.change", ("status",)),
    "delete_zombie": Audit("agent.delete"),
    "put_harness_source": Audit("agent.draft"),
    "compile_harness": Audit("agent.compile", ("config_version_id",)),
    "activate_harness": Audit("agent.activate", ("config_version_id",)),
    "start_canary": Audit("canary.start", ("agent_version", "share")),
    "promote_canary": Audit("canary.promote"),
    "withdraw_canary": Audit("canary.withdraw", ("reason",)),
    "pin_agent": Audit("agent.pin", ("agent_version", "reason")),
    "unpin_agent": Audit("agent.unpin"),
    "put_retention": Audit(
        "workspace.retention",
        ("event_days", "transcript_days", "file_days", "delivery_days", "drop_charged"),
    ),
    "put_scoring": Audit("workspace.scoring", ("context_tokens",)),
    "create_proposal": Audit("proposal.create"),
    "approve_proposal": Audit("proposal.approve"),
    "reject_proposal": Audit("proposal.reject"),
    "rotate_approval_token": Audit("agent.rotate_token"),
    "forget_memory": Audit("memory.forget", ("key",)),
    "reset_workspace_files": Audit("agent.reset_files"),
    "cancel_follow_up": Audit("follow_up.cancel"),
    "cancel_event": Audit("event.cancel"),
    "cancel_workspace_event": Audit("event.cancel"),
    "delete_artefact": Audit("file.delete"),
    "submit_event": Audit("event.cancel"),
    "submit_agent": Audit("agent.change"),
    # Bulk jobs.
    "replay_events": Audit("job.replay", ("filter", "rate")),
    "cancel_events": Audit("job.cancel", ("filter", "rate")),
    "start_shadow": Audit("job.shadow", ("agent_version", "filter", "budget_nanos")),
    "replay_failure": Audit("job.replay", ("rate",)),
    "pause_job": Audit("job.pause"),
    "resume_job": Audit("job.resume"),
    "stop_job": Audit("job.stop"),
    "submit_job": Audit("job.replay"),
    "submit_job_change": Audit("job.pause"),
    "begin_erasure": Audit("erasure.begin", ("path", "dry_run")),
    "stop_erasure": Audit("erasure.stop"),
    # Schedules, webhooks and failures.
    "pause_schedule": Audit("schedule.pause"),
    "resume_schedule": Audit("schedule.resume"),
    "run_schedule": Audit("schedule.run"),
    "submit_schedule": Audit("schedule.pause"),
    "replay_delivery": Audit("delivery.replay"),
    "submit_delivery": Audit("delivery.replay"),
    "acknowledge_failure": Audit("failure.acknowledge"),
    "mute_failure": Audit("failure.mute", ("until",)),
    "submit_failure": Audit("failure.acknowledge"),
    # Approvals and grants.
    "approve": Audit("approval.approve", ("reason",)),
    "deny": Audit("approval.deny", ("reason",)),
    "decide_by_webhook": Audit("approval.decide", ("decision",)),
    "press_in_chat": Audit("approval.decide"),
    "request_integration": Audit("grant.request", ("service",)),
    "change_grant": Audit("grant.change", ("status",)),
    "revoke_grant": Audit("grant.revoke"),
    "decide_grant_by_webhook": Audit("grant.decide", ("decision",)),
    "change_credential_grant": Audit("credential_grant.change", ("status",)),
    "revoke_credential_grant": Audit("credential_grant.revoke"),
    "submit_credential_grant": Audit("credential_grant.change"),
    "submit_grant": Audit("grant.change"),
    "submit_decision": Audit("approval.decide"),
    # Credentials, keys and models.
    "put_credential": Audit("credential.put", ("hosts",), target="name"),
    "delete_credential": Audit("credential.delete"),
    "put_llm_key": Audit("model_key.put", target="provider"),
    "delete_llm_key": Audit("model_key.delete"),
    "put_tenant_provider": Audit("provider.choose", ("provider", "model", "credential_ref")),
    "delete_tenant_provider": Audit("provider.reset"),
    "put_platform_key": Audit("platform_key.put", ("source_workspace_id",), target="provider"),
    "put_named_platform_key": Audit("platform_key.put", ("source_workspace_id",)),
    "delete_platform_key": Audit("platform_key.delete"),
    "create_api_key": Audit("api_key.create", ("key_name", "role", "expires_at")),
    "change_api_key": Audit("api_key.revoke"),
    "delete_api_key": Audit("api_key.delete"),
    "submit_key": Audit("api_key.create"),
    "submit_revocation": Audit("api_key.revoke"),
    "submit_deletion": Audit("api_key.delete"),
    "put_mcp_server": Audit("mcp_server.put"),
    "delete_mcp_server": Audit("mcp_server.delete"),
    "create_agent_key": Audit("agent_key.create", ("zombie_id", "name")),
    "delete_agent_key": Audit("agent_key.delete"),
    # People.
    "create_member": Audit("member.create", ("name", "role", "subject")),
    "change_member": Audit("member.change", ("role", "status")),
    "remove_member": Audit("member.remove", ("keys", "to")),
    "invite_member": Audit("member.invite", ("role",)),
    "submit_member": Audit("member.create"),
    "submit_role": Audit("member.change"),
    "submit_standing": Audit("member.change"),
    "submit_sign_out": Audit("session.end"),
    "submit_removal": Audit("member.remove"),
    "submit_invitation": Audit("member.invite"),
    "end_session": Audit("session.end"),
    "end_sessions": Audit("session.end", ("member_id",)),
    "use_sign_in_link": Audit("session.begin"),
    "arrive": Audit("session.begin"),
    "create_sign_in": Audit("session.begin", ("name",)),
    "end_sign_in": Audit("session.end"),
    "sign_out": Audit("session.end"),
    "complete_auth_session": Audit("terminal.approve"),
    "approve_auth_session": Audit("terminal.approve"),
    "abort_auth_sessions": Audit("terminal.abort"),
    # Workspaces and money.
    "create_workspace": Audit("workspace.create", ("name",)),
    "change_workspace": Audit("workspace.change", ("name", "paused")),
    "submit_model": Audit("provider.choose"),
    "submit_setting": Audit("workspace.change"),
    "submit_credit": Audit("credit.add"),
    "submit_workspace": Audit("workspace.create"),
    "submit_change": Audit("workspace.change"),
    "arrive_from_chat": Audit("chat.install"),
    "uninstall_chat": Audit("chat.uninstall"),
    "scale_plan": Audit("plan.subscribe", ("subscription_id",)),
    "take_billing_event": Audit("plan.change", ("event_type", "reason")),
    "credit_tenant": Audit("credit.add", ("amount_nanos", "reason")),
    # The platform.
    "mint_enrolment_token": Audit(
        "enrolment_token.create", ("tenant_id", "workspace_id", "labels"), of_platform=True
    ),
    "enrol_runner": Audit("runner.enrol", ("host_id", "sandbox_tier", "labels", "slots"), of_platform=True),
    "restart_actor": Audit("actor.restart", ("node", "worker"), of_platform=True),
    "stop_actor": Audit("actor.stop", ("node", "worker"), of_platform=True),
    "submit_actor": Audit("actor.restart", of_platform=True),
    "submit_enrolment": Audit("enrolment_token.create", of_platform=True),
    "submit_runner": Audit("runner.change", of_platform=True),
    "change_runner": Audit("runner.change", ("admin_state",), of_platform=True),
}
"""By the name of the route. Pages tell what the routes tell that they act by."""
ONLY_EVENTS: Final = frozenset({Auth.RUNNER, Auth.WEBHOOK})
"""What these call is recorded by the events, leases and frames that come of it."""
NOT_AUDITED: Final[Mapping[str, str]] = {
    "serve_assistant": "what a tool does is told by its route, which it asks",
    "steer_zombie": "its event says who sent it",
    "replay_event": "the new event says who asked for it, and what it repeats",
    "replay_workspace_event": "the new event says who asked for it, and what it repeats",
    "begin_workspace_upload": "the event of the message that the file goes with names it",
    "send_workspace_part": "the event of the message that the file goes with names it",
    "submit_trial": "what it tries is told as the route that is tried",
    "put_applied": "a note of `sexton apply`; what it changes is told where it is changed",
    "compare_credential": "changes nothing",
    "preview_spec": "changes nothing",
    "verify_webhook": "changes nothing",
    "probe_chat": "changes nothing",
    "rotate_vault": "the master keys are in a file of the machine: the server's log tells",
    "create_auth_session": "nobody is known yet: its approval is told",
    "verify_auth_session": "hands over what was approved, which is told",
    "abort_auth_session": "nobody is known: a terminal gives up waiting",
    "renew_token": "a token of a sign-in whose beginning and end are told",
    "make_token": "a token of a sign-in whose beginning and end are told",
    "retry_run": "gone",
    "submit_spec": "gone",
}
"""The name of a route, and why what it does is not told."""


def with_audit(operation: Operation) -> Operation:
    audit = AUDITED.get(operation.name)
    return operation if audit is None else replace(operation, audit=audit)


def is_decided(operation: Operation) -> bool:
    """Whether it is said of a route if the audit log tells of it."""
    looks = operation.method == "GET" or operation.auth in ONLY_EVENTS
    return looks or operation.name in AUDITED or operation.name in NOT_AUDITED
