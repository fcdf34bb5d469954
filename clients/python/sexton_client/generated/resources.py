"""The methods of the client, made from the OpenAPI document by `make clients`."""

from collections.abc import Iterator, Sequence
from typing import Any

from sexton_client.generated import models, operations
from sexton_client.messages import given
from sexton_client.transport import Resource, Transport


class AgentEvents(Resource):
    """What woke an agent and what came of it; the activity stream; replay and cancel."""

    def list(
        self,
        agent_id: str,
        *,
        q: str | None = None,
        agent: str | None = None,
        source: str | None = None,
        type_: str | None = None,
        code: str | None = None,
        failure: str | None = None,
        runner: str | None = None,
        label: str | None = None,
        after: str | None = None,
        before: str | None = None,
        text: str | None = None,
        cursor: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        status: models.AnyEventStatus | None = None,
        workspace_id: str | None = None,
    ) -> models.EventPage:
        """List one agent's events, newest first.

        For an API key or a user token or the agent's own key, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_ZOMBIE_EVENTS,
            models.EventPage,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={
                "q": q,
                "agent": agent,
                "source": source,
                "type": type_,
                "code": code,
                "failure": failure,
                "runner": runner,
                "label": label,
                "after": after,
                "before": before,
                "text": text,
                "cursor": cursor,
                "actor": actor,
                "since": since,
                "limit": limit,
                "status": status,
            },
        )

    def each(
        self,
        agent_id: str,
        *,
        q: str | None = None,
        agent: str | None = None,
        source: str | None = None,
        type_: str | None = None,
        code: str | None = None,
        failure: str | None = None,
        runner: str | None = None,
        label: str | None = None,
        after: str | None = None,
        before: str | None = None,
        text: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        status: models.AnyEventStatus | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.EventItem]:
        """List one agent's events, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                agent_id,
                q=q,
                agent=agent,
                source=source,
                type_=type_,
                code=code,
                failure=failure,
                runner=runner,
                label=label,
                after=after,
                before=before,
                text=text,
                actor=actor,
                since=since,
                limit=limit,
                status=status,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def get(
        self, agent_id: str, event_id: str, *, wait_ms: int | None = None, workspace_id: str | None = None
    ) -> models.WholeEvent:
        """Show one event of an agent, whole; with `wait_ms` or `Prefer: wait`, once it has ended.

        For an API key or a user token or the agent's own key, from the role viewer on. Deadline: as long as
        it asks to wait, and 30 s.
        """
        return self._transport.call(
            operations.GET_ZOMBIE_EVENT,
            models.WholeEvent,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "event_id": event_id},
            query={"wait_ms": wait_ms},
        )

    def why(self, agent_id: str, event_id: str, *, workspace_id: str | None = None) -> models.EventWhy:
        """Say why an event of an agent waits; as under the workspace.

        For an API key or a user token or the agent's own key, from the role viewer on.
        """
        return self._transport.call(
            operations.EXPLAIN_ZOMBIE_EVENT,
            models.EventWhy,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "event_id": event_id},
        )

    def transcript(
        self,
        agent_id: str,
        event_id: str,
        *,
        attempt: int | None = None,
        number: int | None = None,
        whole: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> models.TranscriptPage:
        """Show what the attempts at an agent's event said and did, in order.

        For an API key or a user token or the agent's own key, from the role user on.
        """
        return self._transport.call(
            operations.GET_ZOMBIE_TRANSCRIPT,
            models.TranscriptPage,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "event_id": event_id},
            query={"attempt": attempt, "number": number, "whole": whole, "cursor": cursor, "limit": limit},
        )

    def each_of_transcript(
        self,
        agent_id: str,
        event_id: str,
        *,
        attempt: int | None = None,
        number: int | None = None,
        whole: bool | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.TranscriptItem]:
        """Show what the attempts at an agent's event said and did, in order. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.transcript(
                agent_id,
                event_id,
                attempt=attempt,
                number=number,
                whole=whole,
                limit=limit,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def replay(
        self,
        agent_id: str,
        event_id: str,
        *,
        request: dict[str, Any] | None = None,
        merge: dict[str, Any] | None = None,
        agent_version: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Replayed:
        """Have the agent work once more on an event that is over.

        A new event with the same actor, type and files, and with the same request unless the body has
        another. It begins at the beginning, and passes gates and budgets again. With `agent_version` it
        runs under that version of the agent's files, whichever is active. For an API key or a user token,
        from the role operator on.
        """
        return self._transport.call(
            operations.REPLAY_EVENT,
            models.Replayed,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "event_id": event_id},
            body=given({"request": request, "merge": merge, "agent_version": agent_version}),
            key=idempotency_key,
        )

    def cancel(
        self, agent_id: str, event_id: str, *, workspace_id: str | None = None
    ) -> models.EventCancelled:
        """End an event that is not over.

        One that waits ends at once, with the approvals that were asked for it; one that runs as soon as its
        runner has heard of it. For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.CANCEL_EVENT,
            models.EventCancelled,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "event_id": event_id},
        )


class AgentKeys(Resource):
    """Keys for programs that act for one agent and for no other."""

    def create(
        self,
        *,
        agent_id: str,
        name: str,
        description: str | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AgentKeyMade:
        """Mint a key with which a program outside acts for one agent, and for no other.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CREATE_AGENT_KEY,
            models.AgentKeyMade,
            path={"workspace_id": workspace_id},
            body={"zombie_id": agent_id, "name": name} | given({"description": description}),
            key=idempotency_key,
        )

    def list(
        self,
        *,
        agent_id: str | None = None,
        page: int | None = None,
        page_size: int | None = None,
        workspace_id: str | None = None,
    ) -> models.AgentKeyList:
        """List the keys of the workspace's agents, newest first; their values are never shown.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_AGENT_KEYS,
            models.AgentKeyList,
            path={"workspace_id": workspace_id},
            query={"zombie_id": agent_id, "page": page, "page_size": page_size},
        )

    def delete(self, key_id: str, *, workspace_id: str | None = None) -> None:
        """Delete a key; from then on its bearer is nobody.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_AGENT_KEY,
            type(None),
            path={"workspace_id": workspace_id, "key_id": key_id},
        )


class Agents(Resource):
    """Install agents, change them, stop them and send them messages."""

    def install(
        self,
        *,
        source_markdown: str,
        trigger_markdown: str,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.ZombieInstalled:
        """Install an agent from its two files.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.INSTALL_ZOMBIE,
            models.ZombieInstalled,
            path={"workspace_id": workspace_id},
            body={"source_markdown": source_markdown, "trigger_markdown": trigger_markdown},
            key=idempotency_key,
        )

    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: models.AnyZombieStatus | None = None,
        name: str | None = None,
        workspace_id: str | None = None,
    ) -> models.ZombiePage:
        """List the workspace's agents, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_ZOMBIES,
            models.ZombiePage,
            path={"workspace_id": workspace_id},
            query={"limit": limit, "cursor": cursor, "status": status, "name": name},
        )

    def each(
        self,
        *,
        limit: int | None = None,
        status: models.AnyZombieStatus | None = None,
        name: str | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.ZombieItem]:
        """List the workspace's agents, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                limit=limit, status=status, name=name, cursor=cursor, workspace_id=workspace_id
            )
        )

    def get(self, agent_id: str, *, workspace_id: str | None = None) -> models.ZombieRecord:
        """Show one agent with its two files, its budget and what it has spent.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_ZOMBIE,
            models.ZombieRecord,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def change(
        self,
        agent_id: str,
        *,
        status: models.AnyZombieTarget | None = None,
        source_markdown: str | None = None,
        trigger_markdown: str | None = None,
        workspace_id: str | None = None,
    ) -> models.ZombieChanged:
        """Stop, wake or kill an agent, or give it other files.

        New files are a new configuration version, active at once; what runs goes on as it began. Of an
        agent that is pinned they are a version that waits, and `pin` says which. Triggers that stay keep
        their secrets; a new secret is shown in this answer only. For an API key or a user token, from the
        role operator on.
        """
        return self._transport.call(
            operations.CHANGE_ZOMBIE,
            models.ZombieChanged,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body=given(
                {"status": status, "source_markdown": source_markdown, "trigger_markdown": trigger_markdown}
            ),
        )

    def delete(self, agent_id: str, *, workspace_id: str | None = None) -> None:
        """Kill an agent, whatever its status, and purge it with all its history.

        What it has cost stays accounted for. For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_ZOMBIE,
            type(None),
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def steer(
        self,
        agent_id: str,
        *,
        message: str,
        files: Sequence[models.MessageFile] | None = None,
        agent_version: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.MessageAccepted:
        """Wake an agent with a person's message, and with files if it names or holds some.

        A message that is refused, for a file or for anything else, brings none. As `multipart/form-data` it
        holds its files: the field `message`, and each part with a file name is a file. For an API key or a
        user token, from the role user on.
        """
        return self._transport.call(
            operations.STEER_ZOMBIE,
            models.MessageAccepted,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"message": message} | given({"files": files, "agent_version": agent_version}),
            key=idempotency_key,
        )

    def profile(self, agent_id: str) -> models.AgentProfile:
        """Show an agent's standing.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_AGENT_PROFILE,
            models.AgentProfile,
            path={"agent_id": agent_id},
        )

    def rotate_approval_token(
        self, agent_id: str, *, workspace_id: str | None = None, idempotency_key: str | None = None
    ) -> models.ApprovalToken:
        """Give the agent another approval token; the old one is out at once.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.ROTATE_APPROVAL_TOKEN,
            models.ApprovalToken,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            key=idempotency_key,
        )

    def files(self, agent_id: str, *, workspace_id: str | None = None) -> models.AgentWorkspace:
        """Show what is known of the folder that an agent's next run starts from.

        For an API key or a user token or the agent's own key, from the role viewer on.
        """
        return self._transport.call(
            operations.SHOW_WORKSPACE_FILES,
            models.AgentWorkspace,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def reset_files(self, agent_id: str, *, workspace_id: str | None = None) -> models.WorkspaceReset:
        """Have the agent's next run start from an empty folder.

        What a run leaves that is under way now does not count either. For an API key or a user token, from
        the role operator on.
        """
        return self._transport.call(
            operations.RESET_WORKSPACE_FILES,
            models.WorkspaceReset,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )


class Approvals(Resource):
    """Gates: what a run may not do before a person has said yes."""

    def list(
        self,
        *,
        status: models.AnyGateStatus | None = None,
        agent_id: str | None = None,
        gate_kind: str | None = None,
        order: models.AnyGateOrder | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.GatePage:
        """List gates, oldest first where no other order is asked for.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_APPROVALS,
            models.GatePage,
            path={"workspace_id": workspace_id},
            query={
                "status": status,
                "zombie_id": agent_id,
                "gate_kind": gate_kind,
                "order": order,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def each(
        self,
        *,
        status: models.AnyGateStatus | None = None,
        agent_id: str | None = None,
        gate_kind: str | None = None,
        order: models.AnyGateOrder | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.GateView]:
        """List gates, oldest first where no other order is asked for. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                status=status,
                agent_id=agent_id,
                gate_kind=gate_kind,
                order=order,
                limit=limit,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def get(self, gate_id: str, *, workspace_id: str | None = None) -> models.GateView:
        """Show one gate.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_APPROVAL,
            models.GateView,
            path={"workspace_id": workspace_id, "gate_id": gate_id},
        )

    def approve(
        self, gate_id: str, *, reason: str | None = None, workspace_id: str | None = None
    ) -> models.GateOutcome:
        """Let what waits at the gate go on; the role `user` approves neither agents nor runs of their own.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.APPROVE,
            models.GateOutcome,
            path={"workspace_id": workspace_id, "gate_id": gate_id},
            body=given({"reason": reason}),
        )

    def deny(
        self, gate_id: str, *, reason: str | None = None, workspace_id: str | None = None
    ) -> models.GateOutcome:
        """Refuse what waits at the gate.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.DENY,
            models.GateOutcome,
            path={"workspace_id": workspace_id, "gate_id": gate_id},
            body=given({"reason": reason}),
        )

    def decide_with_token(
        self, agent_id: str, *, approval_id: str, decision: models.AnyApproveOrDeny
    ) -> models.GateDecided:
        """Approve or deny a gate with the agent's approval token, or by a button in a chat.

        A chat platform sends its signed interactive form: its field `payload` holds an object whose
        `actions[0].value` reads `approve:<gate_id>` or `deny:<gate_id>`. For the agent's approval token.
        """
        return self._transport.call(
            operations.DECIDE_BY_WEBHOOK,
            models.GateDecided,
            path={"zombie_id": agent_id},
            body={"approval_id": approval_id, "decision": decision},
        )


class Audit(Resource):
    """Who changed what, when and from where; each line is bound to the one before it."""

    def list(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.AuditPage:
        """List who changed what in the tenant, newest first.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_AUDIT,
            models.AuditPage,
            path={},
            query={
                "actor": actor,
                "action": action,
                "target": target,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def each(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
    ) -> Iterator[models.AuditItem]:
        """List who changed what in the tenant, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                actor=actor,
                action=action,
                target=target,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
            )
        )

    def list_of_workspace(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.AuditPage:
        """List who changed what in a workspace, newest first; what is the whole tenant's is not among it.

        For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.LIST_WORKSPACE_AUDIT,
            models.AuditPage,
            path={"workspace_id": workspace_id},
            query={
                "actor": actor,
                "action": action,
                "target": target,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def each_of_list_of_workspace(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.AuditItem]:
        """List who changed what in a workspace, newest first; what is the whole tenant's is not among it. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list_of_workspace(
                actor=actor,
                action=action,
                target=target,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def list_of_platform(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.AuditPage:
        """List who changed what of the platform, as its runners, newest first.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.LIST_PLATFORM_AUDIT,
            models.AuditPage,
            path={},
            query={
                "actor": actor,
                "action": action,
                "target": target,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def each_of_list_of_platform(
        self,
        *,
        actor: str | None = None,
        action: str | None = None,
        target: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
    ) -> Iterator[models.AuditItem]:
        """List who changed what of the platform, as its runners, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list_of_platform(
                actor=actor,
                action=action,
                target=target,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
            )
        )

    def export(self) -> bytes:
        """Give all lines of the tenant's log, oldest first, a JSON object each.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace. Deadline: none; ends when either side closes.
        """
        return self._transport.call(
            operations.EXPORT_AUDIT,
            bytes,
            path={},
        )

    def export_of_platform(self) -> bytes:
        """Give all lines of the platform's log, oldest first, a JSON object each.

        For a user token of a platform admin; not for a token that is limited to one workspace. Deadline:
        none; ends when either side closes.
        """
        return self._transport.call(
            operations.EXPORT_PLATFORM_AUDIT,
            bytes,
            path={},
        )


class Billing(Resource):
    """Balance, charges, plans and budgets."""

    def balance(self) -> models.Balance:
        """Show the tenant's balance.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.GET_BALANCE,
            models.Balance,
            path={},
        )

    def charges(self, *, limit: int | None = None, cursor: str | None = None) -> models.ChargePage:
        """List what the tenant's runs were billed, newest first; one entry for each lease that has ended.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_CHARGES,
            models.ChargePage,
            path={},
            query={"limit": limit, "cursor": cursor},
        )

    def each_of_charges(self, *, limit: int | None = None) -> Iterator[models.ChargeItem]:
        """List what the tenant's runs were billed, newest first; one entry for each lease that has ended. All of them, page by page."""
        return self._transport.walk(lambda cursor: self.charges(limit=limit, cursor=cursor))

    def metering_periods(self, event_id: str) -> models.Periods:
        """List the metering rows of one event, oldest first; none for another tenant's.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_METERING_PERIODS,
            models.Periods,
            path={"event_id": event_id},
        )

    def totals(
        self,
        *,
        by: models.AnyTotalsBy | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
    ) -> models.ChargeTotals:
        """Add up what the tenant's runs were billed, by agent, model or UTC day.

        A run counts where it ended. One that used several models counts as its first; its charge lists them
        all. For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.TOTAL_CHARGES,
            models.ChargeTotals,
            path={},
            query={"by": by, "since": since, "until": until, "limit": limit},
        )

    def export(self) -> bytes:
        """Give all that the tenant's runs were billed, newest first, a JSON object each.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace. Deadline: none; ends when either side closes.
        """
        return self._transport.call(
            operations.EXPORT_CHARGES,
            bytes,
            path={},
        )

    def credit(
        self, tenant_id: str, *, amount_nanos: int, reason: str, idempotency_key: str | None = None
    ) -> models.Balance:
        """Add to a tenant's balance; work that waited for it goes on.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.CREDIT_TENANT,
            models.Balance,
            path={"tenant_id": tenant_id},
            body={"amount_nanos": amount_nanos, "reason": reason},
            key=idempotency_key,
        )

    def plan(self, *, workspace_id: str | None = None) -> models.PlanRecord:
        """Show the plan, what it allows, and how much of that is used today.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_PLAN,
            models.PlanRecord,
            path={"workspace_id": workspace_id},
        )

    def scale_plan(
        self, *, subscription_id: str, workspace_id: str | None = None, idempotency_key: str | None = None
    ) -> models.BillingPlan:
        """Go over to the plan `pro` by a subscription; it is the tenant's, and so of all its workspaces.

        For an API key or a user token, from the role operator on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.SCALE_PLAN,
            models.BillingPlan,
            path={"workspace_id": workspace_id},
            body={"subscription_id": subscription_id},
            key=idempotency_key,
        )

    def record_event(
        self,
        *,
        event_type: models.AnyNewBillingEventEventType,
        reason: str,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.BillingPlan:
        """Pass on what the payment provider says; one that comes twice, or late, changes nothing more.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.TAKE_BILLING_EVENT,
            models.BillingPlan,
            path={"workspace_id": workspace_id},
            body={"event_type": event_type, "reason": reason},
            key=idempotency_key,
        )


class Chat(Resource):
    """Approvals in a chat platform."""

    def show(self, *, workspace_id: str | None = None) -> models.ChatView:
        """Show where the workspace's approval requests are posted.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.SHOW_CHAT,
            models.ChatView,
            path={"workspace_id": workspace_id},
        )

    def test(self, *, workspace_id: str | None = None) -> models.ChatStanding:
        """Ask the platform whether the bot's token is still good.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PROBE_CHAT,
            models.ChatStanding,
            path={"workspace_id": workspace_id},
        )

    def uninstall(self, *, workspace_id: str | None = None) -> None:
        """Give the bot's token back and forget it; one that is not there is forgotten already.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.UNINSTALL_CHAT,
            type(None),
            path={"workspace_id": workspace_id},
        )


class CredentialGrants(Resource):
    """Secrets of a workspace; they can be written, and never read back."""

    def list(
        self,
        *,
        agent_id: str | None = None,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.CredentialGrantPage:
        """List which agents may be lent which credentials, by agent, the newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_CREDENTIAL_GRANTS,
            models.CredentialGrantPage,
            path={"workspace_id": workspace_id},
            query={"zombie_id": agent_id, "status": status, "limit": limit, "cursor": cursor},
        )

    def each(
        self,
        *,
        agent_id: str | None = None,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.CredentialGrantItem]:
        """List which agents may be lent which credentials, by agent, the newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                agent_id=agent_id, status=status, limit=limit, cursor=cursor, workspace_id=workspace_id
            )
        )

    def change(
        self,
        agent_id: str,
        credential: str,
        *,
        status: models.AnyGrantTarget,
        workspace_id: str | None = None,
    ) -> models.CredentialGrantItem:
        """Approve, deny or revoke the lending of a credential to an agent.

        Approval holds for the hosts and tools that the agent's files name now; its events that wait go on.
        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CHANGE_CREDENTIAL_GRANT,
            models.CredentialGrantItem,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "credential": credential},
            body={"status": status},
        )

    def revoke(self, agent_id: str, credential: str, *, workspace_id: str | None = None) -> None:
        """Take the grant back: the agent's events wait from the next one on.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.REVOKE_CREDENTIAL_GRANT,
            type(None),
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "credential": credential},
        )


class Credentials(Resource):
    """Secrets of a workspace; they can be written, and never read back."""

    def put(
        self,
        *,
        name: str,
        data: dict[str, Any],
        hosts: Sequence[str] | None = None,
        use: Sequence[models.Use] | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.CredentialKept:
        """Keep a credential, replacing one of its name; `llm` is the name of the model key and taken.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PUT_CREDENTIAL,
            models.CredentialKept,
            path={"workspace_id": workspace_id},
            body={"name": name, "data": data} | given({"hosts": hosts, "use": use}),
            key=idempotency_key,
        )

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, workspace_id: str | None = None
    ) -> models.CredentialList:
        """List names and times, by name; what was kept is never shown.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_CREDENTIALS,
            models.CredentialList,
            path={"workspace_id": workspace_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(
        self, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.CredentialItem]:
        """List names and times, by name; what was kept is never shown. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def delete(self, name: str, *, workspace_id: str | None = None) -> None:
        """Forget a credential; one that does not exist is forgotten already.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_CREDENTIAL,
            type(None),
            path={"workspace_id": workspace_id, "name": name},
        )

    def compare_credential(
        self, name: str, *, data: dict[str, Any], workspace_id: str | None = None
    ) -> models.CredentialCompared:
        """Say whether the vault holds this under the name, without showing what it holds.

        So a program that keeps credentials in step with a store of secrets sends only what differs. For an
        API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.COMPARE_CREDENTIAL,
            models.CredentialCompared,
            path={"workspace_id": workspace_id, "name": name},
            body={"data": data},
        )


class Deliveries(Resource):
    """Deliveries from other services, verified by signatures; what was refused, and replay."""

    def list(
        self,
        *,
        agent_id: str | None = None,
        verdict: models.AnyDeliveryVerdict | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.DeliveryPage:
        """List what came to the workspace's webhooks in the last seven days, newest first.

        Of an agent the newest 200 that were refused are kept, and 300 others. Every accepted delivery is an
        event whatever stands here. For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_DELIVERIES,
            models.DeliveryPage,
            path={"workspace_id": workspace_id},
            query={
                "zombie_id": agent_id,
                "verdict": verdict,
                "since": since,
                "until": until,
                "limit": limit,
                "cursor": cursor,
            },
        )

    def each(
        self,
        *,
        agent_id: str | None = None,
        verdict: models.AnyDeliveryVerdict | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.DeliveryItem]:
        """List what came to the workspace's webhooks in the last seven days, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                agent_id=agent_id,
                verdict=verdict,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def get(self, delivery_id: str, *, workspace_id: str | None = None) -> models.DeliveryRecord:
        """Show one delivery with its headers.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_DELIVERY,
            models.DeliveryRecord,
            path={"workspace_id": workspace_id, "delivery_id": delivery_id},
        )

    def body(self, delivery_id: str, *, workspace_id: str | None = None) -> bytes:
        """Give the body of a delivery, byte by byte as it came.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.READ_DELIVERY_BODY,
            bytes,
            path={"workspace_id": workspace_id, "delivery_id": delivery_id},
        )

    def replay(
        self, delivery_id: str, *, workspace_id: str | None = None, idempotency_key: str | None = None
    ) -> models.DeliveryRecord:
        """Verify a delivery that woke nobody once more, with the secrets of now, as if it had just come.

        Its signed time is judged by when it came. If it is genuine now, it wakes the agent; it makes one
        event at most, however often this is asked, and none where its sender has sent it again since. What
        came of it stands in the answer, a refusal too. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.REPLAY_DELIVERY,
            models.DeliveryRecord,
            path={"workspace_id": workspace_id, "delivery_id": delivery_id},
            key=idempotency_key,
        )


class DeviceLogins(Resource):
    """Device login: a terminal asks, a signed-in person approves."""

    def create(
        self,
        *,
        public_key: str | None = None,
        token_name: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.SessionMade:
        """Begin to wait for a token.

        `login_url` is the page on which a person approves. Without a `public_key` the token can only be
        attached by PATCH. For nobody in particular.
        """
        return self._transport.call(
            operations.CREATE_AUTH_SESSION,
            models.SessionMade,
            path={},
            body=given({"public_key": public_key, "token_name": token_name}),
            key=idempotency_key,
        )

    def get(self, session_id: str) -> models.SessionView:
        """Show how far a session is.

        A token that was attached by PATCH is in the first answer after it, and in no other. For nobody in
        particular.
        """
        return self._transport.call(
            operations.GET_AUTH_SESSION,
            models.SessionView,
            path={"session_id": session_id},
        )

    def complete(
        self, session_id: str, *, token: str, status: models.AnyTarget | None = None
    ) -> models.Completed:
        """Attach a token in plain text.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.COMPLETE_AUTH_SESSION,
            models.Completed,
            path={"session_id": session_id},
            body={"token": token} | given({"status": status}),
        )

    def approve(
        self,
        session_id: str,
        *,
        dashboard_public_key: str,
        ciphertext: str,
        nonce: str,
        verification_code: str,
    ) -> models.Approved:
        """Attach a token that only the terminal can read, behind a code.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.APPROVE_AUTH_SESSION,
            models.Approved,
            path={"session_id": session_id},
            body={
                "dashboard_public_key": dashboard_public_key,
                "ciphertext": ciphertext,
                "nonce": nonce,
                "verification_code": verification_code,
            },
        )

    def verify(self, session_id: str, *, verification_code: str) -> models.HandOver:
        """Take the encrypted token over, with the code that the approval page shows.

        The fifth wrong code ends the session. The same client may ask again for a minute. For nobody in
        particular.
        """
        return self._transport.call(
            operations.VERIFY_AUTH_SESSION,
            models.HandOver,
            path={"session_id": session_id},
            body={"verification_code": verification_code},
        )

    def abort(self, session_id: str) -> None:
        """End a session. Needs no token: the terminal that waits has none, and the id is what it knows.

        For nobody in particular.
        """
        return self._transport.call(
            operations.ABORT_AUTH_SESSION,
            type(None),
            path={"session_id": session_id},
        )

    def abort_all(self) -> models.Aborted:
        """End the open sessions that the caller approved; for a platform admin, all that are open.

        The oldest 1,024 at a time: with that many ended there may be more. For an API key or a user token,
        from the role viewer on.
        """
        return self._transport.call(
            operations.ABORT_AUTH_SESSIONS,
            models.Aborted,
            path={},
        )


class Erasures(Resource):
    """Take a person's value out of all that a workspace keeps; count first, and keep the receipt."""

    def begin(
        self,
        *,
        path: str,
        value: str | None = None,
        value_sha256: str | None = None,
        value_chars: int | None = None,
        dry_run: bool | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.ErasureView:
        """Take a value out of all that a workspace keeps, or count what has it.

        Events whose request has the value at the path are the person's: they go whole, with all that
        belongs to them. Elsewhere only the value goes. It is done beside other work; charges and counts
        stay. For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.BEGIN_ERASURE,
            models.ErasureView,
            path={"workspace_id": workspace_id},
            body={"path": path}
            | given(
                {"value": value, "value_sha256": value_sha256, "value_chars": value_chars, "dry_run": dry_run}
            ),
            key=idempotency_key,
        )

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, workspace_id: str | None = None
    ) -> models.ErasurePage:
        """List a workspace's erasures, newest first; they are kept for good.

        For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.LIST_ERASURES,
            models.ErasurePage,
            path={"workspace_id": workspace_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(
        self, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.ErasureView]:
        """List a workspace's erasures, newest first; they are kept for good. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def get(self, erasure_id: str, *, workspace_id: str | None = None) -> models.ErasureView:
        """Show how far an erasure is; of one that is over this is the receipt.

        For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.GET_ERASURE,
            models.ErasureView,
            path={"workspace_id": workspace_id, "erasure_id": erasure_id},
        )

    def stop(self, erasure_id: str, *, workspace_id: str | None = None) -> models.ErasureView:
        """End an erasure that is not over; what is gone stays gone.

        For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.STOP_ERASURE,
            models.ErasureView,
            path={"workspace_id": workspace_id, "erasure_id": erasure_id},
        )


class Events(Resource):
    """What woke an agent and what came of it; the activity stream; replay and cancel."""

    def send(
        self,
        agent_id: str,
        *,
        message: str,
        files: Sequence[models.MessageFile] | None = None,
        agent_version: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.MessageAccepted:
        """Wake an agent with a person's message, and with files if it names or holds some.

        A message that is refused, for a file or for anything else, brings none. As `multipart/form-data` it
        holds its files: the field `message`, and each part with a file name is a file. For an API key or a
        user token, from the role user on.
        """
        return self._transport.call(
            operations.STEER_ZOMBIE,
            models.MessageAccepted,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"message": message} | given({"files": files, "agent_version": agent_version}),
            key=idempotency_key,
        )

    def list(
        self,
        *,
        q: str | None = None,
        agent: str | None = None,
        source: str | None = None,
        type_: str | None = None,
        code: str | None = None,
        failure: str | None = None,
        runner: str | None = None,
        label: str | None = None,
        after: str | None = None,
        before: str | None = None,
        text: str | None = None,
        cursor: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        status: models.AnyEventStatus | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
    ) -> models.EventPage:
        """List a workspace's events, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_WORKSPACE_EVENTS,
            models.EventPage,
            path={"workspace_id": workspace_id},
            query={
                "q": q,
                "agent": agent,
                "source": source,
                "type": type_,
                "code": code,
                "failure": failure,
                "runner": runner,
                "label": label,
                "after": after,
                "before": before,
                "text": text,
                "cursor": cursor,
                "actor": actor,
                "since": since,
                "limit": limit,
                "status": status,
                "zombie_id": agent_id,
            },
        )

    def each(
        self,
        *,
        q: str | None = None,
        agent: str | None = None,
        source: str | None = None,
        type_: str | None = None,
        code: str | None = None,
        failure: str | None = None,
        runner: str | None = None,
        label: str | None = None,
        after: str | None = None,
        before: str | None = None,
        text: str | None = None,
        actor: str | None = None,
        since: str | None = None,
        limit: int | None = None,
        status: models.AnyEventStatus | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.EventItem]:
        """List a workspace's events, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                q=q,
                agent=agent,
                source=source,
                type_=type_,
                code=code,
                failure=failure,
                runner=runner,
                label=label,
                after=after,
                before=before,
                text=text,
                actor=actor,
                since=since,
                limit=limit,
                status=status,
                agent_id=agent_id,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def get(
        self, event_id: str, *, wait_ms: int | None = None, workspace_id: str | None = None
    ) -> models.WholeEvent:
        """Show one event of a workspace, whole; with `wait_ms` or `Prefer: wait`, once it has ended.

        For an API key or a user token, from the role viewer on. Deadline: as long as it asks to wait, and
        30 s.
        """
        return self._transport.call(
            operations.GET_WORKSPACE_EVENT,
            models.WholeEvent,
            path={"workspace_id": workspace_id, "event_id": event_id},
            query={"wait_ms": wait_ms},
        )

    def why(self, event_id: str, *, workspace_id: str | None = None) -> models.EventWhy:
        """Say why an event waits, what to do about it, its place in the queue and when it may start.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.EXPLAIN_WORKSPACE_EVENT,
            models.EventWhy,
            path={"workspace_id": workspace_id, "event_id": event_id},
        )

    def trace(self, event_id: str, *, workspace_id: str | None = None) -> models.EventTrace:
        """Show the trace of an event: its waits, leases, runs, questions to models, calls of tools and gates.

        It says nothing of prompts, answers, arguments and results, and needs no collector. For an API key
        or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_EVENT_TRACE,
            models.EventTrace,
            path={"workspace_id": workspace_id, "event_id": event_id},
        )

    def transcript(
        self,
        event_id: str,
        *,
        attempt: int | None = None,
        number: int | None = None,
        whole: bool | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> models.TranscriptPage:
        """Show what the attempts at an event of a workspace said and did, in order.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.GET_WORKSPACE_TRANSCRIPT,
            models.TranscriptPage,
            path={"workspace_id": workspace_id, "event_id": event_id},
            query={"attempt": attempt, "number": number, "whole": whole, "cursor": cursor, "limit": limit},
        )

    def each_of_transcript(
        self,
        event_id: str,
        *,
        attempt: int | None = None,
        number: int | None = None,
        whole: bool | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.TranscriptItem]:
        """Show what the attempts at an event of a workspace said and did, in order. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.transcript(
                event_id,
                attempt=attempt,
                number=number,
                whole=whole,
                limit=limit,
                cursor=cursor,
                workspace_id=workspace_id,
            )
        )

    def frames(
        self,
        event_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.FramesPage:
        """List the frames of an event in the order in which they came, as its agent's stream told them.

        Frames are kept for a day, and the newest 10,000 of an agent; what is older is gone. A page ends
        with `limit` items or 256 KiB, whichever comes first. For an API key or a user token, from the role
        viewer on.
        """
        return self._transport.call(
            operations.LIST_EVENT_FRAMES,
            models.FramesPage,
            path={"workspace_id": workspace_id, "event_id": event_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each_of_frames(
        self, event_id: str, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.FrameItem]:
        """List the frames of an event in the order in which they came, as its agent's stream told them. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.frames(event_id, limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def replay(
        self,
        event_id: str,
        *,
        request: dict[str, Any] | None = None,
        merge: dict[str, Any] | None = None,
        agent_version: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Replayed:
        """Have the event's agent work once more on an event that is over; as under the agent.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.REPLAY_WORKSPACE_EVENT,
            models.Replayed,
            path={"workspace_id": workspace_id, "event_id": event_id},
            body=given({"request": request, "merge": merge, "agent_version": agent_version}),
            key=idempotency_key,
        )

    def cancel(self, event_id: str, *, workspace_id: str | None = None) -> models.EventCancelled:
        """End an event that is not over; as under its agent.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.CANCEL_WORKSPACE_EVENT,
            models.EventCancelled,
            path={"workspace_id": workspace_id, "event_id": event_id},
        )

    def export(
        self,
        *,
        q: str | None = None,
        agent: str | None = None,
        source: str | None = None,
        type_: str | None = None,
        code: str | None = None,
        failure: str | None = None,
        runner: str | None = None,
        label: str | None = None,
        after: str | None = None,
        before: str | None = None,
        text: str | None = None,
        status: models.AnyEventStatus | None = None,
        workspace_id: str | None = None,
    ) -> bytes:
        """Give all events that a filter picks, newest first, whole: a JSON object each, as in the list.

        Without a filter it is every event of the workspace. What arrives meanwhile is not among them. For
        an API key or a user token, from the role viewer on. Deadline: none; ends when either side closes.
        """
        return self._transport.call(
            operations.EXPORT_EVENTS,
            bytes,
            path={"workspace_id": workspace_id},
            query={
                "q": q,
                "agent": agent,
                "source": source,
                "type": type_,
                "code": code,
                "failure": failure,
                "runner": runner,
                "label": label,
                "after": after,
                "before": before,
                "text": text,
                "status": status,
            },
        )

    def replay_all(
        self,
        *,
        filter_: str,
        dry_run: bool | None = None,
        rate: int | None = None,
        request: dict[str, Any] | None = None,
        merge: dict[str, Any] | None = None,
        agent_version: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkAnswer:
        """Have agents work once more on all events that are over and that a filter picks.

        Each becomes a new event, once, in the order in which they came; gates, budgets and the bounds of
        queues hold for it. A job does it, beside other work. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.REPLAY_EVENTS,
            models.BulkAnswer,
            path={"workspace_id": workspace_id},
            body={"filter": filter_}
            | given(
                {
                    "dry_run": dry_run,
                    "rate": rate,
                    "request": request,
                    "merge": merge,
                    "agent_version": agent_version,
                }
            ),
            key=idempotency_key,
        )

    def cancel_all(
        self,
        *,
        filter_: str,
        dry_run: bool | None = None,
        rate: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkAnswer:
        """End all events that are not over and that a filter picks; a job does it, beside other work.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CANCEL_EVENTS,
            models.BulkAnswer,
            path={"workspace_id": workspace_id},
            body={"filter": filter_} | given({"dry_run": dry_run, "rate": rate}),
            key=idempotency_key,
        )

    def throughput(self, *, minutes: int | None = None, workspace_id: str | None = None) -> models.Throughput:
        """Show how many events came in each of the last minutes, and what became of them.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_THROUGHPUT,
            models.Throughput,
            path={"workspace_id": workspace_id},
            query={"minutes": minutes},
        )

    def get_queue(
        self, *, minutes: int | None = None, workspace_id: str | None = None
    ) -> models.WorkspaceQueue:
        """Show how long events wait for a runner, by the labels that they need, and what leases have left.

        Ages of the past are those of the events that came within the minutes asked for, of the newest
        20,000. For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_QUEUE,
            models.WorkspaceQueue,
            path={"workspace_id": workspace_id},
            query={"minutes": minutes},
        )


class Failures(Resource):
    """What fails alike, in groups: known, muted, or done again."""

    def list(
        self,
        *,
        status: models.AnyFailureStatus | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.FailurePage:
        """List what fails in a workspace, in groups of what fails alike, the last seen first.

        Two failures are alike when agent, label, code and message are, without ids, numbers, times and
        paths in it. An event is in its group a second after it has failed. For an API key or a user token,
        from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_FAILURES,
            models.FailurePage,
            path={"workspace_id": workspace_id},
            query={"status": status, "zombie_id": agent_id, "limit": limit, "cursor": cursor},
        )

    def each(
        self,
        *,
        status: models.AnyFailureStatus | None = None,
        agent_id: str | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.FailureView]:
        """List what fails in a workspace, in groups of what fails alike, the last seen first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                status=status, agent_id=agent_id, limit=limit, cursor=cursor, workspace_id=workspace_id
            )
        )

    def get(self, failure_id: str, *, workspace_id: str | None = None) -> models.FailureView:
        """Show one group of failures.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_FAILURE,
            models.FailureView,
            path={"workspace_id": workspace_id, "failure_id": failure_id},
        )

    def acknowledge(self, failure_id: str, *, workspace_id: str | None = None) -> models.FailureView:
        """Say that somebody knows; with the next failure the group is open again.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.ACKNOWLEDGE_FAILURE,
            models.FailureView,
            path={"workspace_id": workspace_id, "failure_id": failure_id},
        )

    def mute(
        self, failure_id: str, *, until: int | None = None, workspace_id: str | None = None
    ) -> models.FailureView:
        """Be quiet about a group until a time, or, without one, no longer.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.MUTE_FAILURE,
            models.FailureView,
            path={"workspace_id": workspace_id, "failure_id": failure_id},
            body=given({"until": until}),
        )

    def replay(
        self,
        failure_id: str,
        *,
        dry_run: bool | None = None,
        rate: int | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkAnswer:
        """Have the agent work once more on every event of the group, as `events:replay` does.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.REPLAY_FAILURE,
            models.BulkAnswer,
            path={"workspace_id": workspace_id, "failure_id": failure_id},
            body=given({"dry_run": dry_run, "rate": rate}),
            key=idempotency_key,
        )


class Files(Resource):
    """What runs leave: listed, read whole or in ranges, deleted."""

    def begin_upload(self, *, sha256: str, size: int, workspace_id: str | None = None) -> models.UploadView:
        """Declare a content that a message is to bring; the same again says how much of it has come.

        It is the caller's alone, and counts against the workspace's quota from now on. What no message
        brings is deleted an hour after its last part. For an API key or a user token, from the role user
        on.
        """
        return self._transport.call(
            operations.BEGIN_WORKSPACE_UPLOAD,
            models.UploadView,
            path={"workspace_id": workspace_id},
            body={"sha256": sha256, "size": size},
        )

    def send_part(
        self, upload_id: str, content: bytes, *, offset: int | None = None, workspace_id: str | None = None
    ) -> models.UploadView:
        """Send the next bytes of a content. A part that came before changes nothing.

        For an API key or a user token, from the role user on.
        """
        return self._transport.call(
            operations.SEND_WORKSPACE_PART,
            models.UploadView,
            path={"workspace_id": workspace_id, "upload_id": upload_id},
            query={"offset": offset},
            body=content,
        )

    def list(
        self,
        event_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.ArtefactPage:
        """List the files that an event's runs left, in the order in which they came.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_ARTEFACTS,
            models.ArtefactPage,
            path={"workspace_id": workspace_id, "event_id": event_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(
        self, event_id: str, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.ArtefactItem]:
        """List the files that an event's runs left, in the order in which they came. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(event_id, limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def get(self, artefact_id: str, *, workspace_id: str | None = None) -> models.ArtefactItem:
        """Show what is known of a file, without its content.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_ARTEFACT,
            models.ArtefactItem,
            path={"workspace_id": workspace_id, "artefact_id": artefact_id},
        )

    def read(self, artefact_id: str, *, workspace_id: str | None = None) -> bytes:
        """Give a file, or one range of it (RFC 9110).

        `ETag` is its SHA-256; `If-None-Match` and `If-Range` with it are heeded, dates are not. For an API
        key or a user token, from the role user on. Deadline: none; ends when either side closes.
        """
        return self._transport.call(
            operations.READ_ARTEFACT,
            bytes,
            path={"workspace_id": workspace_id, "artefact_id": artefact_id},
        )

    def delete(self, artefact_id: str, *, workspace_id: str | None = None) -> None:
        """Delete a file before its time. Its bytes count against the quota for up to an hour more.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_ARTEFACT,
            type(None),
            path={"workspace_id": workspace_id, "artefact_id": artefact_id},
        )


class Fleet(Resource):
    """Runners, the queue and the supervision tree, for platform admins."""

    def leases(self, *, limit: int | None = None) -> models.LeaseList:
        """List the leases that are held, those with the least time left first.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.LIST_LIVE_LEASES,
            models.LeaseList,
            path={},
            query={"limit": limit},
        )

    def queue(self) -> models.QueueState:
        """Show what waits for a runner; of more than 100,000 events the oldest count.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.VIEW_QUEUE,
            models.QueueState,
            path={},
        )

    def supervisor(self) -> models.SupervisorState:
        """Show the live supervision tree.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.VIEW_SUPERVISOR,
            models.SupervisorState,
            path={},
        )

    def tree(
        self,
        *,
        node: str | None = None,
        worker: int | None = None,
        kind: str | None = None,
        limit: int | None = None,
    ) -> models.ActorTree:
        """Show the supervision tree with what each kind of actor has done, the latest crashes and dead letters.

        It is that of one process: each worker of a server has its own, and so has each node. It names all
        nodes. For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.VIEW_TREE,
            models.ActorTree,
            path={},
            query={"node": node, "worker": worker, "kind": kind, "limit": limit},
        )

    def actor(
        self, kind: str, *, key: str | None = None, node: str | None = None, worker: int | None = None
    ) -> models.ActorView:
        """Show one actor: its mail, what it works on, timers, crashes with their tracebacks, dead letters.

        Without `worker` it is looked for at all workers of the node; the answer says which has it. For a
        user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.VIEW_ACTOR,
            models.ActorView,
            path={"kind": kind},
            query={"key": key, "node": node, "worker": worker},
        )

    def actor_messages(
        self,
        kind: str,
        *,
        key: str | None = None,
        node: str | None = None,
        worker: int | None = None,
        contents: bool | None = None,
    ) -> models.MessageList:
        """Show the last 50 messages that an actor has handled, newest first.

        The first look begins the recording, so it shows nothing yet; it ends a minute after the last look.
        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.LIST_ACTOR_MESSAGES,
            models.MessageList,
            path={"kind": kind},
            query={"key": key, "node": node, "worker": worker, "contents": contents},
        )

    def restart_actor(
        self, kind: str, *, key: str | None = None, node: str | None = None, worker: int | None = None
    ) -> models.ActorDone:
        """Have an actor begin again from what the database says, after the message that it works on.

        The mail that waits is kept. One that does not come to the end of its message is cut off within
        seconds, and gets that message again. Who waits for an answer that it has put off is told to ask
        again. For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.RESTART_ACTOR,
            models.ActorDone,
            path={"kind": kind},
            body=given({"key": key, "node": node, "worker": worker}),
        )

    def stop_actor(
        self, kind: str, *, key: str | None = None, node: str | None = None, worker: int | None = None
    ) -> models.ActorDone:
        """End an actor after the message that it works on; the mail that waits is refused, and its askers told.

        Its next message wakes a new one, which begins from what the database says. One that exists once can
        only be restarted. For a user token of a platform admin; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.STOP_ACTOR,
            models.ActorDone,
            path={"kind": kind},
            body=given({"key": key, "node": node, "worker": worker}),
        )


class FollowUps(Resource):
    """Wake-ups that a run has asked for, up to thirty days ahead."""

    def list(
        self,
        agent_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.FollowUpPage:
        """List an agent's follow-ups, newest first; one that is over is shown for thirty days.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_FOLLOW_UPS,
            models.FollowUpPage,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(
        self, agent_id: str, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.FollowUpItem]:
        """List an agent's follow-ups, newest first; one that is over is shown for thirty days. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(agent_id, limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def cancel(self, agent_id: str, follow_up_id: str, *, workspace_id: str | None = None) -> None:
        """Take back a follow-up that waits; once more changes nothing.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CANCEL_FOLLOW_UP,
            type(None),
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "follow_up_id": follow_up_id},
        )


class Grants(Resource):
    """Grants: which services an agent may use, and who decided so."""

    def request(
        self,
        agent_id: str,
        *,
        service: str,
        reason: str,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.GrantMade:
        """Ask for the use of a service on behalf of an agent; an open request or grant is found again.

        For an API key or a user token or the agent's own key, from the role user on.
        """
        return self._transport.call(
            operations.REQUEST_INTEGRATION,
            models.GrantMade,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"service": service, "reason": reason},
            key=idempotency_key,
        )

    def list(
        self,
        *,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
    ) -> models.GrantPage:
        """List a workspace's grants and requests, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_WORKSPACE_GRANTS,
            models.GrantPage,
            path={"workspace_id": workspace_id},
            query={"status": status, "limit": limit, "cursor": cursor, "zombie_id": agent_id},
        )

    def each(
        self,
        *,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        agent_id: str | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.GrantItem]:
        """List a workspace's grants and requests, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                status=status, limit=limit, agent_id=agent_id, cursor=cursor, workspace_id=workspace_id
            )
        )

    def list_of_agent(
        self,
        agent_id: str,
        *,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.GrantPage:
        """List one agent's grants and requests, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_ZOMBIE_GRANTS,
            models.GrantPage,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={"status": status, "limit": limit, "cursor": cursor},
        )

    def each_of_list_of_agent(
        self,
        agent_id: str,
        *,
        status: models.AnyGrantStatus | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.GrantItem]:
        """List one agent's grants and requests, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list_of_agent(
                agent_id, status=status, limit=limit, cursor=cursor, workspace_id=workspace_id
            )
        )

    def change(
        self, agent_id: str, grant_id: str, *, status: models.AnyGrantTarget, workspace_id: str | None = None
    ) -> models.GrantItem:
        """Approve, deny or revoke; the same answer again changes nothing, and what is not open is not revoked.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CHANGE_GRANT,
            models.GrantItem,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "grant_id": grant_id},
            body={"status": status},
        )

    def revoke(self, agent_id: str, grant_id: str, *, workspace_id: str | None = None) -> None:
        """Take a grant back, or withdraw a request; the agent may ask again.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.REVOKE_GRANT,
            type(None),
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "grant_id": grant_id},
        )

    def decide_with_token(
        self, agent_id: str, *, grant_id: str, decision: models.AnyApproveOrDeny
    ) -> models.GrantItem:
        """Approve or deny a request with the agent's approval token, or by a button in a chat.

        A chat platform sends its signed interactive form: its field `payload` holds an object whose
        `actions[0].value` reads `approve:<grant_id>` or `deny:<grant_id>`. For the agent's approval token.
        """
        return self._transport.call(
            operations.DECIDE_GRANT_BY_WEBHOOK,
            models.GrantItem,
            path={"zombie_id": agent_id},
            body={"grant_id": grant_id, "decision": decision},
        )


class Harness(Resource):
    """Versions of an agent's files: drafted, compiled, activated."""

    def put_source(
        self, *, agent_id: str, source_markdown: str, trigger_markdown: str, workspace_id: str | None = None
    ) -> models.VersionState:
        """Keep two files as an agent's next version, a draft.

        The same files as the newest draft's are that draft. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.PUT_HARNESS_SOURCE,
            models.VersionState,
            path={"workspace_id": workspace_id},
            body={
                "agent_id": agent_id,
                "source_markdown": source_markdown,
                "trigger_markdown": trigger_markdown,
            },
        )

    def compile(self, *, config_version_id: str, workspace_id: str | None = None) -> models.VersionCompiled:
        """Say whether a draft makes an agent, and if not, why.

        One that was compiled before comes back as it is. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.COMPILE_HARNESS,
            models.VersionCompiled,
            path={"workspace_id": workspace_id},
            body={"config_version_id": config_version_id},
        )

    def activate(self, *, config_version_id: str, workspace_id: str | None = None) -> models.VersionActivated:
        """Make a compiled version the active one, or go back to one that was active before.

        It holds from the agent's next lease on. `webhook_urls` is there when the version has triggers with
        new secrets: they are shown in this answer only. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.ACTIVATE_HARNESS,
            models.VersionActivated,
            path={"workspace_id": workspace_id},
            body={"config_version_id": config_version_id},
        )

    def versions(
        self,
        *,
        agent_id: str,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.VersionPage:
        """List the versions of an agent's configuration, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_HARNESS_VERSIONS,
            models.VersionPage,
            path={"workspace_id": workspace_id},
            query={"agent_id": agent_id, "limit": limit, "cursor": cursor},
        )

    def each_of_versions(
        self, *, agent_id: str, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.VersionItem]:
        """List the versions of an agent's configuration, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.versions(
                agent_id=agent_id, limit=limit, cursor=cursor, workspace_id=workspace_id
            )
        )

    def version(
        self, config_version_id: str, *, against: str | None = None, workspace_id: str | None = None
    ) -> models.VersionText:
        """Show one version with its two files, and what it would change of the active one.

        `POST …/harness/activate` goes back to a version that was active before. For an API key or a user
        token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_HARNESS_VERSION,
            models.VersionText,
            path={"workspace_id": workspace_id, "config_version_id": config_version_id},
            query={"against": against},
        )

    def get_canary(self, agent_id: str, *, workspace_id: str | None = None) -> models.CanaryState:
        """Show the newest trial of one of the agent's versions, with what came of both sides' runs.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_CANARY,
            models.CanaryState,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def start_canary(
        self,
        agent_id: str,
        *,
        agent_version: int,
        share: int,
        guard: models.CanaryGuard | None = None,
        promote_after: int | None = None,
        workspace_id: str | None = None,
    ) -> models.CanaryView:
        """Try out one of an agent's versions on a share of its events; one at a time.

        The credentials that its files name are granted with this, as by activating it. For an API key or a
        user token, from the role operator on.
        """
        return self._transport.call(
            operations.START_CANARY,
            models.CanaryView,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"agent_version": agent_version, "share": share}
            | given({"guard": guard, "promote_after": promote_after}),
        )

    def promote_canary(self, agent_id: str, *, workspace_id: str | None = None) -> models.CanaryPromoted:
        """Make the version that is on trial the active one, from the agent's next lease on.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PROMOTE_CANARY,
            models.CanaryPromoted,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def withdraw_canary(
        self, agent_id: str, *, reason: str | None = None, workspace_id: str | None = None
    ) -> models.CanaryView:
        """End the trial: all events go to the active version again, those that wait for the candidate too.

        A run of the candidate goes on; should it come back to the queue, the active version does it again.
        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.WITHDRAW_CANARY,
            models.CanaryView,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body=given({"reason": reason}),
        )

    def pin_agent(
        self, agent_id: str, *, agent_version: int, reason: str | None = None, workspace_id: str | None = None
    ) -> models.PinState:
        """Have an agent work by its active version, whatever files it is given, until it is let go.

        Files that it is given meanwhile are kept as a version that waits. For an API key or a user token,
        from the role operator on.
        """
        return self._transport.call(
            operations.PIN_AGENT,
            models.PinState,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"agent_version": agent_version} | given({"reason": reason}),
        )

    def unpin_agent(self, agent_id: str, *, workspace_id: str | None = None) -> models.PinState:
        """Let an agent go: the active version stays, until another is activated.

        Files that it was given meanwhile are a compiled version, which `POST …/harness/activate` activates.
        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.UNPIN_AGENT,
            models.PinState,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
        )

    def start_shadow(
        self,
        agent_id: str,
        *,
        agent_version: int,
        budget_nanos: int,
        filter_: str | None = None,
        limit: int | None = None,
        dry_run: bool | None = None,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.BulkAnswer:
        """Run saved events of an agent once more under a version of its files, without effects.

        One after the other, in turn with the agent's own events, until the budget is spent. Nothing is
        reached but the model, lent, remembered or scored, nobody is asked, and nothing follows. `GET
        …/jobs/{job_id}/shadow` shows both side by side. For an API key or a user token, from the role
        operator on.
        """
        return self._transport.call(
            operations.START_SHADOW,
            models.BulkAnswer,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"agent_version": agent_version, "budget_nanos": budget_nanos}
            | given({"filter": filter_, "limit": limit, "dry_run": dry_run}),
            key=idempotency_key,
        )

    def get_shadow(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.ShadowReport:
        """Show what came of a shadow so far: answer, cost, tools and time of each event beside the original's.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_SHADOW,
            models.ShadowReport,
            path={"workspace_id": workspace_id, "job_id": job_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each_of_get_shadow(
        self, job_id: str, *, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.ShadowItem]:
        """Show what came of a shadow so far: answer, cost, tools and time of each event beside the original's. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.get_shadow(job_id, limit=limit, cursor=cursor, workspace_id=workspace_id)
        )


class Jobs(Resource):
    """Replay or cancel many events by a filter; progress, pause and stop."""

    def list(
        self, *, limit: int | None = None, cursor: str | None = None, workspace_id: str | None = None
    ) -> models.JobPage:
        """List a workspace's bulk jobs, newest first; one that is over is shown for ninety days.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_JOBS,
            models.JobPage,
            path={"workspace_id": workspace_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(self, *, limit: int | None = None, workspace_id: str | None = None) -> Iterator[models.JobView]:
        """List a workspace's bulk jobs, newest first; one that is over is shown for ninety days. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def get(self, job_id: str, *, workspace_id: str | None = None) -> models.JobView:
        """Show how far a bulk job is.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_JOB,
            models.JobView,
            path={"workspace_id": workspace_id, "job_id": job_id},
        )

    def pause(self, job_id: str, *, workspace_id: str | None = None) -> models.JobView:
        """Have a job wait, after the events that it has in hand; once more changes nothing.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PAUSE_JOB,
            models.JobView,
            path={"workspace_id": workspace_id, "job_id": job_id},
        )

    def resume(self, job_id: str, *, workspace_id: str | None = None) -> models.JobView:
        """Let a paused job go on where it was.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.RESUME_JOB,
            models.JobView,
            path={"workspace_id": workspace_id, "job_id": job_id},
        )

    def stop(self, job_id: str, *, workspace_id: str | None = None) -> models.JobView:
        """End a job after the events that it has in hand; what it has done stays done.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.STOP_JOB,
            models.JobView,
            path={"workspace_id": workspace_id, "job_id": job_id},
        )


class Keys(Resource):
    """Keys of a tenant, shown once when they are made."""

    def list(
        self,
        *,
        page: int | None = None,
        page_size: int | None = None,
        sort: models.AnyKeySort | None = None,
        owner_id: str | None = None,
    ) -> models.KeyPage:
        """List the tenant's keys; their values are never shown.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_API_KEYS,
            models.KeyPage,
            path={},
            query={"page": page, "page_size": page_size, "sort": sort, "owner_id": owner_id},
        )

    def each(
        self,
        *,
        page_size: int | None = None,
        sort: models.AnyKeySort | None = None,
        owner_id: str | None = None,
    ) -> Iterator[models.KeyItem]:
        """List the tenant's keys; their values are never shown. All of them, page by page."""
        return self._transport.walk_pages(
            lambda page: self.list(page_size=page_size, sort=sort, owner_id=owner_id, page=page)
        )

    def create(
        self,
        *,
        key_name: str,
        description: str | None = None,
        role: models.AnyRole | None = None,
        platform_admin: bool | None = None,
        expires_at: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.KeyMade:
        """Mint a key; its role is never above its maker's, and only a platform admin makes a platform admin's.

        The key is its maker's: where he is suspended it is refused, and when he is removed it ends or has
        another owner. One that was made with a key has the owner of that key. For an API key or a user
        token, from the role operator on; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.CREATE_API_KEY,
            models.KeyMade,
            path={},
            body={"key_name": key_name}
            | given(
                {
                    "description": description,
                    "role": role,
                    "platform_admin": platform_admin,
                    "expires_at": expires_at,
                }
            ),
            key=idempotency_key,
        )

    def change(self, key_id: str, *, active: bool) -> models.KeyChanged:
        """Revoke a key of at most the caller's rank; what is revoked stays so.

        For an API key or a user token, from the role operator on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.CHANGE_API_KEY,
            models.KeyChanged,
            path={"key_id": key_id},
            body={"active": active},
        )

    def delete(self, key_id: str) -> None:
        """Delete a key of at most the caller's rank that was revoked.

        For an API key or a user token, from the role operator on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.DELETE_API_KEY,
            type(None),
            path={"key_id": key_id},
        )


class McpServers(Resource):
    """Servers of the Model Context Protocol that a workspace declares for its agents."""

    def put(
        self,
        name: str,
        *,
        url: str | None = None,
        command: str | None = None,
        headers: dict[str, str] | None = None,
        env: dict[str, str] | None = None,
        tools: Sequence[str] | None = None,
        workspace_id: str | None = None,
    ) -> models.McpServerItem:
        """Declare a server, replacing one of its name; runs that start from now on are given it so.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PUT_MCP_SERVER,
            models.McpServerItem,
            path={"workspace_id": workspace_id, "name": name},
            body=given({"url": url, "command": command, "headers": headers, "env": env, "tools": tools}),
        )

    def list(self, *, workspace_id: str | None = None) -> models.McpServerList:
        """List the workspace's servers by name; below the role `operator`, their names and tools only.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_MCP_SERVERS,
            models.McpServerList,
            path={"workspace_id": workspace_id},
        )

    def delete(self, name: str, *, workspace_id: str | None = None) -> None:
        """Remove a server; one that does not exist is removed already. Runs that name it do not start.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_MCP_SERVER,
            type(None),
            path={"workspace_id": workspace_id, "name": name},
        )


class Members(Resource):
    """Who is admitted to a tenant, as what, and until when."""

    def list(
        self,
        *,
        status: models.AnyMemberStatus | None = None,
        page: int | None = None,
        page_size: int | None = None,
    ) -> models.MemberPage:
        """List the members of the tenant, removed ones too, oldest first.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_MEMBERS,
            models.MemberPage,
            path={},
            query={"status": status, "page": page, "page_size": page_size},
        )

    def each(
        self, *, status: models.AnyMemberStatus | None = None, page_size: int | None = None
    ) -> Iterator[models.MemberItem]:
        """List the members of the tenant, removed ones too, oldest first. All of them, page by page."""
        return self._transport.walk_pages(
            lambda page: self.list(status=status, page_size=page_size, page=page)
        )

    def create(
        self,
        *,
        name: str,
        role: models.AnyRole | None = None,
        subject: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Invited:
        """Add a member, with a link that signs one browser in, once, within an hour.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.CREATE_MEMBER,
            models.Invited,
            path={},
            body={"name": name} | given({"role": role, "subject": subject}),
            key=idempotency_key,
        )

    def change(
        self, member_id: str, *, role: models.AnyRole | None = None, status: models.AnyStanding | None = None
    ) -> models.MemberItem:
        """Give a member another role, suspend, or resume.

        A suspended member is signed out, and all keys and tokens are refused at once; they work again when
        the member is resumed. No one can change a member above their own rank, or raise one above it. For
        an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.CHANGE_MEMBER,
            models.MemberItem,
            path={"member_id": member_id},
            body=given({"role": role, "status": status}),
        )

    def remove(
        self, member_id: str, *, keys: models.AnyKeysAfter | None = None, to: str | None = None
    ) -> models.Removed:
        """Remove a member: sign-ins, tokens and links end at once, and keys end or are handed over.

        A removed member stays in the list, and is not admitted again by signing in; only an invitation does
        that. For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.REMOVE_MEMBER,
            models.Removed,
            path={"member_id": member_id},
            query={"keys": keys, "to": to},
        )

    def invite(
        self, member_id: str, *, role: models.AnyRole | None = None, idempotency_key: str | None = None
    ) -> models.Invited:
        """Make a fresh link for a member; it lets a removed one in again.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.INVITE_MEMBER,
            models.Invited,
            path={"member_id": member_id},
            body=given({"role": role}),
            key=idempotency_key,
        )


class Memories(Resource):
    """What an agent remembers from one run to the next."""

    def list(
        self,
        agent_id: str,
        *,
        query: str | None = None,
        category: str | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> models.MemoryList:
        """Show what an agent remembers, newest first, or what fits a query, best first.

        For an API key or a user token or the agent's own key, from the role user on.
        """
        return self._transport.call(
            operations.LIST_MEMORIES,
            models.MemoryList,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={"query": query, "category": category, "limit": limit},
        )

    def forget(self, agent_id: str, *, key: str | None = None, workspace_id: str | None = None) -> None:
        """Forget an entry of what an agent remembers; where there is none, it is forgotten already.

        A run that has begun may still know it, and may keep it again. For an API key or a user token, from
        the role operator on.
        """
        return self._transport.call(
            operations.FORGET_MEMORY,
            type(None),
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            query={"key": key},
        )


class ModelKeys(Resource):
    """Which language model a tenant uses, and with whose key."""

    def put(self, *, provider: str, api_key: str, workspace_id: str | None = None) -> None:
        """Keep the workspace's own model key, replacing the one there was.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PUT_LLM_KEY,
            type(None),
            path={"workspace_id": workspace_id},
            body={"provider": provider, "api_key": api_key},
        )

    def get(self, *, workspace_id: str | None = None) -> models.LlmKey:
        """Tell the provider of the workspace's own key; the key is never shown.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_LLM_KEY,
            models.LlmKey,
            path={"workspace_id": workspace_id},
        )

    def delete(self, *, workspace_id: str | None = None) -> None:
        """Forget the workspace's own key; where there is none, it is forgotten already.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.DELETE_LLM_KEY,
            type(None),
            path={"workspace_id": workspace_id},
        )


class Models(Resource):
    """The public list of models and their prices."""

    def list(self) -> models.ModelList:
        """List the models that the operator offers, and what they and a run's time cost.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_MODELS,
            models.ModelList,
            path={},
        )

    def catalogue(self, public_key: str, *, model: str | None = None) -> models.PublicCatalogue:
        """Show models and rates, to be kept for five minutes and asked for again by ETag.

        For nobody in particular.
        """
        return self._transport.call(
            operations.SHOW_CATALOGUE,
            models.PublicCatalogue,
            path={"public_key": public_key},
            query={"model": model},
        )


class PlatformKeys(Resource):
    """Which language model a tenant uses, and with whose key."""

    def list(self) -> models.PlatformKeyList:
        """List the tenant's entries: for which providers a workspace's vault lends its key.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_PLATFORM_KEYS,
            models.PlatformKeyList,
            path={},
        )

    def get(self, provider: str) -> models.PlatformKeyView:
        """Show the entry of one provider.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.GET_PLATFORM_KEY,
            models.PlatformKeyView,
            path={"provider": provider},
        )

    def put(self, provider: str, *, source_workspace_id: str) -> models.PlatformKeyView:
        """The same, with the provider in the path.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.PUT_NAMED_PLATFORM_KEY,
            models.PlatformKeyView,
            path={"provider": provider},
            body={"source_workspace_id": source_workspace_id},
        )

    def put_first(self, *, provider: str, source_workspace_id: str) -> models.PlatformKeyView:
        """Lend the key of a workspace's vault to the whole tenant; a platform admin's serves all tenants.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.PUT_PLATFORM_KEY,
            models.PlatformKeyView,
            path={},
            body={"provider": provider, "source_workspace_id": source_workspace_id},
        )

    def delete(self, provider: str) -> None:
        """Lend it no more; where there is no entry, it is not lent already.

        For an API key or a user token, from the role admin on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.DELETE_PLATFORM_KEY,
            type(None),
            path={"provider": provider},
        )


class Proposals(Resource):
    """Changes to an agent's files that a run or a person proposes and people decide."""

    def create(
        self,
        agent_id: str,
        *,
        title: str,
        rationale: str,
        source_markdown: str | None = None,
        trigger_markdown: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.ProposalView:
        """Propose a change of an agent's files, on top of its active configuration.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CREATE_PROPOSAL,
            models.ProposalView,
            path={"agent_id": agent_id},
            body={"title": title, "rationale": rationale}
            | given({"source_markdown": source_markdown, "trigger_markdown": trigger_markdown}),
            key=idempotency_key,
        )

    def list(
        self,
        agent_id: str,
        *,
        status: models.AnyProposalStatus | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> models.ProposalPage:
        """List an agent's proposals, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_PROPOSALS,
            models.ProposalPage,
            path={"agent_id": agent_id},
            query={"status": status, "limit": limit, "cursor": cursor},
        )

    def each(
        self, agent_id: str, *, status: models.AnyProposalStatus | None = None, limit: int | None = None
    ) -> Iterator[models.ProposalView]:
        """List an agent's proposals, newest first. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(agent_id, status=status, limit=limit, cursor=cursor)
        )

    def get(self, agent_id: str, proposal_id: str) -> models.ProposalView:
        """Show one proposal with its diff.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_PROPOSAL,
            models.ProposalView,
            path={"agent_id": agent_id, "proposal_id": proposal_id},
        )

    def approve(self, agent_id: str, proposal_id: str) -> models.ProposalApproved:
        """Apply a proposal: its files become the active configuration.

        `CONFIG_CHANGED` when the configuration is not the one any more that it was based on; `REJECTED`
        when its files make no agent. For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.APPROVE_PROPOSAL,
            models.ProposalApproved,
            path={"agent_id": agent_id, "proposal_id": proposal_id},
        )

    def reject(self, agent_id: str, proposal_id: str, *, rejection_reason: str) -> models.ProposalRejected:
        """Turn a proposal down; the agent is told why with its next lease.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.REJECT_PROPOSAL,
            models.ProposalRejected,
            path={"agent_id": agent_id, "proposal_id": proposal_id},
            body={"rejection_reason": rejection_reason},
        )


class Provider(Resource):
    """Which language model a tenant uses, and with whose key."""

    def get(self) -> models.TenantProviderView:
        """Show the provider that the tenant's runs use where nothing nearer says otherwise.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_TENANT_PROVIDER,
            models.TenantProviderView,
            path={},
        )

    def put(
        self,
        *,
        mode: models.AnyProviderMode,
        provider: str | None = None,
        model: str | None = None,
        context_cap_tokens: int | None = None,
        credential_ref: str | None = None,
    ) -> models.TenantProviderView:
        """Choose it: on the platform's key, or on the tenant's own from a credential of a workspace's vault.

        Mode `platform` and nothing else is to choose nothing, as with `DELETE`. For an API key or a user
        token, from the role operator on; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.PUT_TENANT_PROVIDER,
            models.TenantProviderView,
            path={},
            body={"mode": mode}
            | given(
                {
                    "provider": provider,
                    "model": model,
                    "context_cap_tokens": context_cap_tokens,
                    "credential_ref": credential_ref,
                }
            ),
        )

    def delete(self) -> models.TenantProviderView:
        """Choose nothing: runs use what their workspace or the platform has. The answer is what holds now.

        For an API key or a user token, from the role operator on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.DELETE_TENANT_PROVIDER,
            models.TenantProviderView,
            path={},
        )


class Retention(Resource):
    """How long workspaces keep what they have, and what would go."""

    def show(self, *, workspace_id: str | None = None) -> models.RetentionView:
        """Show how many days the workspace keeps what it has, and who says so.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_RETENTION,
            models.RetentionView,
            path={"workspace_id": workspace_id},
        )

    def set(
        self,
        *,
        event_days: int | None = None,
        transcript_days: int | None = None,
        file_days: int | None = None,
        delivery_days: int | None = None,
        drop_charged: bool | None = None,
        workspace_id: str | None = None,
    ) -> models.RetentionView:
        """Set how many days the workspace keeps what it has; the plan's and the server's bounds still count.

        Where events that were charged would go at once, it is refused unless `drop_charged` says that they
        may, or the server archives them first. For an API key or a user token, from the role admin on.
        """
        return self._transport.call(
            operations.PUT_RETENTION,
            models.RetentionView,
            path={"workspace_id": workspace_id},
            body=given(
                {
                    "event_days": event_days,
                    "transcript_days": transcript_days,
                    "file_days": file_days,
                    "delivery_days": delivery_days,
                    "drop_charged": drop_charged,
                }
            ),
        )

    def preview(
        self,
        *,
        event_days: int | None = None,
        transcript_days: int | None = None,
        file_days: int | None = None,
        delivery_days: int | None = None,
        workspace_id: str | None = None,
    ) -> models.RetentionPreview:
        """Count what would go, class by class, with the days that are set or with others; nothing is deleted.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.PREVIEW_RETENTION,
            models.RetentionPreview,
            path={"workspace_id": workspace_id},
            query={
                "event_days": event_days,
                "transcript_days": transcript_days,
                "file_days": file_days,
                "delivery_days": delivery_days,
            },
        )


class Runner(Resource):
    """What runners call: leases, renewals, activity, gates and reports."""

    def describe(self) -> models.RunnerSelf:
        """Show the calling runner's own record.

        For a runner token.
        """
        return self._transport.call(
            operations.DESCRIBE_SELF,
            models.RunnerSelf,
            path={},
        )

    def beat(
        self,
        *,
        active_lease_ids: Sequence[str] | None = None,
        wait_ms: int | None = None,
        offers: Sequence[str] | None = None,
    ) -> models.PulseAnswer:
        """Say that the runner lives, and hear what it is to stop.

        For a runner token. Deadline: as long as it asks to wait, and 30 s.
        """
        return self._transport.call(
            operations.BEAT,
            models.PulseAnswer,
            path={},
            body=given({"active_lease_ids": active_lease_ids, "wait_ms": wait_ms, "offers": offers}),
        )

    def lease(self, *, max_: int | None = None, wait_ms: int | None = None) -> models.LeasesAnswer:
        """Wait for work; the answer comes the moment there is some.

        For a runner token. Deadline: as long as it asks to wait, and 30 s.
        """
        return self._transport.call(
            operations.POLL_LEASES,
            models.LeasesAnswer,
            path={},
            body=given({"max": max_, "wait_ms": wait_ms}),
        )

    def renew(
        self,
        lease_id: str,
        *,
        input_tokens: int,
        cached_input_tokens: int,
        output_tokens: int,
        run_ms: int | None = None,
        cache_write_tokens: int | None = None,
        fallbacks: Sequence[models.FallbackCounts] | None = None,
        fencing_token: int | None = None,
    ) -> models.RenewalAnswer:
        """Extend a lease by one term, and be billed for the slice since the last.

        For a runner token.
        """
        return self._transport.call(
            operations.RENEW_LEASE,
            models.RenewalAnswer,
            path={"lease_id": lease_id},
            body={
                "input_tokens": input_tokens,
                "cached_input_tokens": cached_input_tokens,
                "output_tokens": output_tokens,
            }
            | given(
                {
                    "run_ms": run_ms,
                    "cache_write_tokens": cache_write_tokens,
                    "fallbacks": fallbacks,
                    "fencing_token": fencing_token,
                }
            ),
        )

    def renew_all(self, *, leases: Sequence[models.OneRenewal]) -> models.RenewalResults:
        """Extend many leases at once; each has its own result, in the order asked.

        For a runner token.
        """
        return self._transport.call(
            operations.RENEW_LEASES,
            models.RenewalResults,
            path={},
            body={"leases": leases},
        )

    def show_activity(
        self, lease_id: str, *, frames: Sequence[Any], fencing_token: int | None = None
    ) -> models.FramesAnswer:
        """Append frames to the agent's stream.

        For a runner token.
        """
        return self._transport.call(
            operations.SHOW_ACTIVITY,
            models.FramesAnswer,
            path={"lease_id": lease_id},
            body={"frames": frames} | given({"fencing_token": fencing_token}),
        )

    def append_transcript(
        self, lease_id: str, *, entries: Sequence[models.EntryIn], fencing_token: int | None = None
    ) -> models.EntriesTaken:
        """Add entries to the transcript of a live lease.

        For a runner token.
        """
        return self._transport.call(
            operations.APPEND_TRANSCRIPT,
            models.EntriesTaken,
            path={"lease_id": lease_id},
            body={"entries": entries} | given({"fencing_token": fencing_token}),
        )

    def read_file(
        self,
        lease_id: str,
        *,
        number: int | None = None,
        offset: int | None = None,
        fencing_token: int | None = None,
    ) -> bytes:
        """Give the next bytes of a file that the event of a lease brings, at most 1 MiB of them.

        For a runner token.
        """
        return self._transport.call(
            operations.READ_EVENT_FILE,
            bytes,
            path={"lease_id": lease_id},
            query={"number": number, "offset": offset, "fencing_token": fencing_token},
        )

    def start_workspace(self, lease_id: str, *, fencing_token: int | None = None) -> models.WorkspaceStart:
        """Say what the run of a lease starts from; asked again, the answer is the same.

        An event's first run starts from what the agent's last reported run left, and so do its further ones
        and its replays. One that was parked goes on with what it had. For a runner token.
        """
        return self._transport.call(
            operations.START_WORKSPACE,
            models.WorkspaceStart,
            path={"lease_id": lease_id},
            body=given({"fencing_token": fencing_token}),
        )

    def read_workspace(
        self, lease_id: str, *, offset: int | None = None, fencing_token: int | None = None
    ) -> bytes:
        """Give the next bytes of the snapshot that the run starts from, at most 1 MiB of them.

        For a runner token.
        """
        return self._transport.call(
            operations.READ_WORKSPACE,
            bytes,
            path={"lease_id": lease_id},
            query={"offset": offset, "fencing_token": fencing_token},
        )

    def keep_workspace(
        self, lease_id: str, *, upload_id: str, fencing_token: int | None = None
    ) -> models.SnapshotView:
        """Leave a content as the run's workspace; a second one takes the place of the first.

        It counts once the lease is reported, and for its own event once it is parked. Of a lease that ends
        otherwise it never counts. For a runner token.
        """
        return self._transport.call(
            operations.KEEP_WORKSPACE,
            models.SnapshotView,
            path={"lease_id": lease_id},
            body={"upload_id": upload_id} | given({"fencing_token": fencing_token}),
        )

    def open_gate(
        self,
        lease_id: str,
        *,
        action_id: str,
        tool_name: str,
        action_name: str,
        gate_kind: str | None = None,
        proposed_action: str | None = None,
        evidence: dict[str, Any] | None = None,
        blast_radius: str | None = None,
        fencing_token: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.GateView:
        """Ask for approval; the same action_id of an event again is the same gate.

        For a runner token.
        """
        return self._transport.call(
            operations.OPEN_GATE,
            models.GateView,
            path={"lease_id": lease_id},
            body={"action_id": action_id, "tool_name": tool_name, "action_name": action_name}
            | given(
                {
                    "gate_kind": gate_kind,
                    "proposed_action": proposed_action,
                    "evidence": evidence,
                    "blast_radius": blast_radius,
                    "fencing_token": fencing_token,
                }
            ),
            key=idempotency_key,
        )

    def await_gate(self, lease_id: str, gate_id: str, *, wait_ms: int | None = None) -> models.GateView:
        """Wait for a gate to be resolved.

        For a runner token. Deadline: as long as it asks to wait, and 30 s.
        """
        return self._transport.call(
            operations.AWAIT_GATE,
            models.GateView,
            path={"lease_id": lease_id, "gate_id": gate_id},
            query={"wait_ms": wait_ms},
        )

    def release(
        self,
        lease_id: str,
        *,
        reason: str | None = None,
        fencing_token: int | None = None,
        retry_after_ms: int | None = None,
        checkpoint: dict[str, Any] | None = None,
        usage: models.ReleasedUsage | None = None,
    ) -> None:
        """Give the event back to the queue, at once or to wait for a time; the attempt does not count.

        For a runner token.
        """
        return self._transport.call(
            operations.RELEASE_LEASE,
            type(None),
            path={"lease_id": lease_id},
            body=given(
                {
                    "reason": reason,
                    "fencing_token": fencing_token,
                    "retry_after_ms": retry_after_ms,
                    "checkpoint": checkpoint,
                    "usage": usage,
                }
            ),
        )

    def park(
        self, lease_id: str, *, gate_id: str, checkpoint: dict[str, Any], fencing_token: int | None = None
    ) -> None:
        """Wait at a gate without holding a slot; the event goes on when the gate is resolved.

        For a runner token.
        """
        return self._transport.call(
            operations.PARK_LEASE,
            type(None),
            path={"lease_id": lease_id},
            body={"gate_id": gate_id, "checkpoint": checkpoint} | given({"fencing_token": fencing_token}),
        )

    def begin_upload(
        self, lease_id: str, *, sha256: str, size: int, fencing_token: int | None = None
    ) -> models.UploadView:
        """Declare a content by its length and hash; the same again says how much of it has come.

        It counts against the workspace's quota from now on. What becomes no file is deleted an hour after
        its last part. For a runner token.
        """
        return self._transport.call(
            operations.BEGIN_UPLOAD,
            models.UploadView,
            path={"lease_id": lease_id},
            body={"sha256": sha256, "size": size} | given({"fencing_token": fencing_token}),
        )

    def send_part(
        self, lease_id: str, upload_id: str, content: bytes, *, offset: int, fencing_token: int | None = None
    ) -> models.UploadView:
        """Send the next bytes of a content. A part that came before changes nothing.

        For a runner token.
        """
        return self._transport.call(
            operations.SEND_PART,
            models.UploadView,
            path={"lease_id": lease_id, "upload_id": upload_id},
            query={"offset": offset, "fencing_token": fencing_token},
            body=content,
        )

    def keep_artefact(
        self,
        lease_id: str,
        *,
        upload_id: str,
        name: str,
        media_type: str | None = None,
        fencing_token: int | None = None,
    ) -> models.ArtefactItem:
        """Keep a content that was sent as a file of the run; the same name and content again is the same file.

        For a runner token.
        """
        return self._transport.call(
            operations.KEEP_ARTEFACT,
            models.ArtefactItem,
            path={"lease_id": lease_id},
            body={"upload_id": upload_id, "name": name}
            | given({"media_type": media_type, "fencing_token": fencing_token}),
        )

    def report(
        self,
        *,
        lease_id: str,
        event_id: str,
        fencing_token: int,
        outcome: models.AnyOutcome,
        input_tokens: int,
        cached_input_tokens: int,
        output_tokens: int,
        response_text: str | None = None,
        failure_reason: str | None = None,
        evidence: dict[str, Any] | None = None,
        telemetry: models.Telemetry | None = None,
        checkpoint: dict[str, Any] | None = None,
        memory: Sequence[models.RunMemory] | None = None,
        proposals: Sequence[models.ProposalDraft] | None = None,
        cache_write_tokens: int | None = None,
        fallbacks: Sequence[models.FallbackCounts] | None = None,
    ) -> models.ReportAnswer:
        """Say how the run ended; the same report again is answered with `duplicate`.

        A `processed` one that leaves a `checkpoint` could not finish: a new event goes on from there, in
        the same commit. For a runner token.
        """
        return self._transport.call(
            operations.REPORT_RUN,
            models.ReportAnswer,
            path={},
            body={
                "lease_id": lease_id,
                "event_id": event_id,
                "fencing_token": fencing_token,
                "outcome": outcome,
                "input_tokens": input_tokens,
                "cached_input_tokens": cached_input_tokens,
                "output_tokens": output_tokens,
            }
            | given(
                {
                    "response_text": response_text,
                    "failure_reason": failure_reason,
                    "evidence": evidence,
                    "telemetry": telemetry,
                    "checkpoint": checkpoint,
                    "memory": memory,
                    "proposals": proposals,
                    "cache_write_tokens": cache_write_tokens,
                    "fallbacks": fallbacks,
                }
            ),
        )

    def report_all(self, *, reports: Sequence[models.ReportBody]) -> models.ReportResults:
        """Say how up to 64 runs ended; each has its own result, in the order sent.

        Each is taken, refused or known again just as it would be alone. For a runner token.
        """
        return self._transport.call(
            operations.REPORT_RUNS,
            models.ReportResults,
            path={},
            body={"reports": reports},
        )

    def request_integration(
        self, lease_id: str, *, service: str, reason: str, idempotency_key: str | None = None
    ) -> models.GrantMade:
        """Ask for the use of a service from inside a run.

        For a runner token.
        """
        return self._transport.call(
            operations.REQUEST_FROM_RUN,
            models.GrantMade,
            path={"lease_id": lease_id},
            body={"service": service, "reason": reason},
            key=idempotency_key,
        )

    def lend_integration(self, lease_id: str, service: str) -> models.LentService:
        """Lend a run the credential of a service that its agent was granted; the stream shows that it was.

        For a runner token.
        """
        return self._transport.call(
            operations.LEND_INTEGRATION,
            models.LentService,
            path={"lease_id": lease_id, "service": service},
        )

    def recall_memories(
        self,
        agent_id: str,
        *,
        query: str | None = None,
        category: str | None = None,
        limit: int | None = None,
        lease_id: str | None = None,
        fencing_token: int | None = None,
    ) -> models.MemoryList:
        """Look up what the agent of a live lease remembers.

        For a runner token.
        """
        return self._transport.call(
            operations.RECALL_MEMORIES,
            models.MemoryList,
            path={"zombie_id": agent_id},
            query={
                "query": query,
                "category": category,
                "limit": limit,
                "lease_id": lease_id,
                "fencing_token": fencing_token,
            },
        )

    def keep_memory(
        self,
        agent_id: str,
        *,
        key: str,
        content: str | None = None,
        category: str | None = None,
        delete: bool | None = None,
        lease_id: str | None = None,
        fencing_token: int | None = None,
    ) -> models.MemoryKept:
        """Keep an entry for the agent of a live lease, or forget one.

        At 1,000 entries the oldest that is not `core` makes room; where all are `core` there is none. For a
        runner token.
        """
        return self._transport.call(
            operations.KEEP_MEMORY,
            models.MemoryKept,
            path={"zombie_id": agent_id},
            body={"key": key}
            | given(
                {
                    "content": content,
                    "category": category,
                    "delete": delete,
                    "lease_id": lease_id,
                    "fencing_token": fencing_token,
                }
            ),
        )

    def schedule_follow_up(
        self,
        lease_id: str,
        *,
        call_id: str,
        message: str,
        delay_s: int | None = None,
        at: int | None = None,
        idempotency_key: str | None = None,
    ) -> models.FollowUpMade:
        """Have the agent of a live lease woken once more, a minute to thirty days from now.

        At most 16 of an agent wait; one more is `UZ-REQ-009`. For a runner token.
        """
        return self._transport.call(
            operations.SCHEDULE_FOLLOW_UP,
            models.FollowUpMade,
            path={"lease_id": lease_id},
            body={"call_id": call_id, "message": message} | given({"delay_s": delay_s, "at": at}),
            key=idempotency_key,
        )


class Runners(Resource):
    """Runners, the queue and the supervision tree, for platform admins."""

    def enrolment_token(
        self,
        *,
        tenant_id: str | None = None,
        workspace_id: str | None = None,
        labels: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> models.EnrolmentMade:
        """Mint a token that enrols one runner, and says whose events it is given.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.MINT_ENROLMENT_TOKEN,
            models.EnrolmentMade,
            path={},
            body=given({"tenant_id": tenant_id, "workspace_id": workspace_id, "labels": labels}),
            key=idempotency_key,
        )

    def enrol(
        self,
        *,
        host_id: str,
        sandbox_tier: models.AnySandboxTier,
        labels: Sequence[str] | None = None,
        slots: int | None = None,
        offers: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> models.RunnerEnrolled:
        """Add a runner; an enrolment token is used up by it, and says whose events the runner is given.

        A label that begins with `reserved:` is refused unless the enrolment token allows it. For an
        enrolment token, or a platform admin.
        """
        return self._transport.call(
            operations.ENROL_RUNNER,
            models.RunnerEnrolled,
            path={},
            body={"host_id": host_id, "sandbox_tier": sandbox_tier}
            | given({"labels": labels, "slots": slots, "offers": offers}),
            key=idempotency_key,
        )

    def list(
        self,
        *,
        page: int | None = None,
        page_size: int | None = None,
        sort: models.AnyRunnerSort | None = None,
    ) -> models.FleetPage:
        """List the runners; no token, nor the hash of one, is shown.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.LIST_RUNNERS,
            models.FleetPage,
            path={},
            query={"page": page, "page_size": page_size, "sort": sort},
        )

    def each(
        self, *, page_size: int | None = None, sort: models.AnyRunnerSort | None = None
    ) -> Iterator[models.FleetRunner]:
        """List the runners; no token, nor the hash of one, is shown. All of them, page by page."""
        return self._transport.walk_pages(lambda page: self.list(page_size=page_size, sort=sort, page=page))

    def change(self, runner_id: str, *, admin_state: models.AnyAdminWish) -> models.FleetRunner:
        """Cordon, drain, revoke a runner, or take it back; a revoked one stays revoked.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.CHANGE_RUNNER,
            models.FleetRunner,
            path={"runner_id": runner_id},
            body={"admin_state": admin_state},
        )

    def events(
        self, runner_id: str, *, limit: int | None = None, cursor: str | None = None
    ) -> models.RunnerHistory:
        """List what a runner went through, newest first.

        Its enrolment, changes of its standing with who made them, and its leases by their grant, each with
        how it ended. For a user token of a platform admin; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_RUNNER_EVENTS,
            models.RunnerHistory,
            path={"runner_id": runner_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each_of_events(self, runner_id: str, *, limit: int | None = None) -> Iterator[models.RunnerEvent]:
        """List what a runner went through, newest first. All of them, page by page."""
        return self._transport.walk(lambda cursor: self.events(runner_id, limit=limit, cursor=cursor))


class Schedules(Resource):
    """When agents fire by the clock: next, last and missed; pause, resume, run now."""

    def list(
        self,
        *,
        agent_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.SchedulePage:
        """List the schedules of a workspace or of one agent: next and last firings, and what was missed.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_SCHEDULES,
            models.SchedulePage,
            path={"workspace_id": workspace_id},
            query={"zombie_id": agent_id, "limit": limit, "cursor": cursor},
        )

    def each(
        self, *, agent_id: str | None = None, limit: int | None = None, workspace_id: str | None = None
    ) -> Iterator[models.ScheduleItem]:
        """List the schedules of a workspace or of one agent: next and last firings, and what was missed. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(agent_id=agent_id, limit=limit, cursor=cursor, workspace_id=workspace_id)
        )

    def get(self, agent_id: str, schedule_id: str, *, workspace_id: str | None = None) -> models.ScheduleItem:
        """Show one schedule of an agent.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_SCHEDULE,
            models.ScheduleItem,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "schedule_id": schedule_id},
        )

    def pause(
        self, agent_id: str, schedule_id: str, *, workspace_id: str | None = None
    ) -> models.ScheduleItem:
        """Let a schedule rest: what is due meanwhile is not made up for. Its agent's others go on.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PAUSE_SCHEDULE,
            models.ScheduleItem,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "schedule_id": schedule_id},
        )

    def resume(
        self, agent_id: str, schedule_id: str, *, workspace_id: str | None = None
    ) -> models.ScheduleItem:
        """Let a schedule fire again, from its next time on.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.RESUME_SCHEDULE,
            models.ScheduleItem,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "schedule_id": schedule_id},
        )

    def run(
        self,
        agent_id: str,
        schedule_id: str,
        *,
        workspace_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.ScheduleRun:
        """Have the agent work as if the schedule fired now; its next firing stays where it is.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.RUN_SCHEDULE,
            models.ScheduleRun,
            path={"workspace_id": workspace_id, "zombie_id": agent_id, "schedule_id": schedule_id},
            key=idempotency_key,
        )


class Scores(Resource):
    """How an agent has done: its status, trust and scores."""

    def list(self, agent_id: str, *, limit: int | None = None, cursor: str | None = None) -> models.ScorePage:
        """List how an agent's finished runs were scored, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_AGENT_SCORES,
            models.ScorePage,
            path={"agent_id": agent_id},
            query={"limit": limit, "cursor": cursor},
        )

    def each(self, agent_id: str, *, limit: int | None = None) -> Iterator[models.ScoreItem]:
        """List how an agent's finished runs were scored, newest first. All of them, page by page."""
        return self._transport.walk(lambda cursor: self.list(agent_id, limit=limit, cursor=cursor))

    def settings(self, *, workspace_id: str | None = None) -> models.ScoringView:
        """Show how much of their score history the workspace's agents are shown.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_SCORING,
            models.ScoringView,
            path={"workspace_id": workspace_id},
        )

    def change_settings(self, *, context_tokens: int, workspace_id: str | None = None) -> models.ScoringView:
        """Set how much of their score history the workspace's agents are shown.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PUT_SCORING,
            models.ScoringView,
            path={"workspace_id": workspace_id},
            body={"context_tokens": context_tokens},
        )


class Service(Resource):
    """Health, metrics, signing keys and the description of this interface."""

    def whoami(self) -> models.Whoami:
        """Say whom the server takes the caller for, and what the caller may do.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.WHOAMI,
            models.Whoami,
            path={},
        )

    def health(self) -> models.Health:
        """Say that the process answers.

        For nobody in particular.
        """
        return self._transport.call(
            operations.HEALTHZ,
            models.Health,
            path={},
        )

    def readiness(self) -> models.Readiness:
        """Say whether work can be done: 200, or 503 without the database or while stopping.

        For nobody in particular.
        """
        return self._transport.call(
            operations.READYZ,
            models.Readiness,
            path={},
        )

    def metrics(self, *, by: models.AnyMetricsBy | None = None) -> bytes:
        """Show the counters, as Prometheus reads them. Of several workers: the sums, or each.

        As OpenMetrics, with exemplars, to whoever names `application/openmetrics-text` in `Accept`. For
        nobody in particular on a server that only its own machine reaches, else the metrics token.
        """
        return self._transport.call(
            operations.METRICS,
            bytes,
            path={},
            query={"by": by},
        )

    def signing_keys(self) -> models.KeySet:
        """Show the public keys of the built-in issuer.

        For nobody in particular.
        """
        return self._transport.call(
            operations.JWKS,
            models.KeySet,
            path={},
        )

    def openapi(self) -> dict[str, Any]:
        """Show the OpenAPI 3.1 document.

        For nobody in particular.
        """
        return self._transport.call(
            operations.OPENAPI,
            dict[str, Any],
            path={},
        )

    def settings(self) -> models.SettingList:
        """List every option of the server: its value, where the value comes from, and what it is for.

        Options are changed where the server is started. The value of a secret is not shown. For a user
        token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.LIST_SETTINGS,
            models.SettingList,
            path={},
        )


class Sessions(Resource):
    """Where people of a tenant are signed in, for them and for its admins."""

    def list(
        self, *, whose: models.AnyWhose | None = None, member_id: str | None = None
    ) -> models.SessionList:
        """List where the caller, a member, or everybody is signed in, newest first; 200 at most.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.LIST_SESSIONS,
            models.SessionList,
            path={},
            query={"whose": whose, "member_id": member_id},
        )

    def end(self, session_id: str) -> None:
        """End a session of the caller's own, or as an admin of anybody's of at most the caller's rank.

        Its tokens and streams end at once, on every node. For an API key or a user token, from the role
        viewer on; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.END_SESSION,
            type(None),
            path={"session_id": session_id},
        )

    def end_all(self, *, member_id: str | None = None) -> models.SessionsEnded:
        """End all sessions of the caller, this one too, or as an admin all of a member's.

        For an API key or a user token, from the role viewer on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.END_SESSIONS,
            models.SessionsEnded,
            path={},
            query={"member_id": member_id},
        )


class SignIns(Resource):
    """Sign-in sessions of people and their terminals: which there are, and ending them."""

    def create(self, *, name: str | None = None, idempotency_key: str | None = None) -> models.SignInMade:
        """Make the sign-in of a terminal last: exchange the token that was approved for it, once.

        Only the token that the approval page made for this terminal is taken. For an API key or a user
        token, from the role viewer on; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.CREATE_SIGN_IN,
            models.SignInMade,
            path={},
            body=given({"name": name}),
            key=idempotency_key,
        )

    def list(self) -> models.SignInList:
        """List where the caller is signed in, in browsers and terminals, newest first.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_SIGN_INS,
            models.SignInList,
            path={},
        )

    def end(self, sign_in_id: str) -> None:
        """Sign the caller out there: its tokens end at once on this server, within a second on others.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.END_SIGN_IN,
            type(None),
            path={"sign_in_id": sign_in_id},
        )

    def renew_token(self, *, refresh_token: str) -> models.Renewed:
        """Mint a user token for fifteen minutes with the refresh token of a terminal.

        The role is the one that the user has now. For nobody in particular.
        """
        return self._transport.call(
            operations.RENEW_TOKEN,
            models.Renewed,
            path={},
            body={"refresh_token": refresh_token},
        )


class Vault(Resource):
    """The master key that seals all secrets."""

    def show(self) -> models.VaultView:
        """Show the master keys by number, and how many secrets are under each.

        For a user token of a platform admin; not for a token that is limited to one workspace.
        """
        return self._transport.call(
            operations.SHOW_VAULT,
            models.VaultView,
            path={},
        )

    def rotate(self, *, idempotency_key: str | None = None) -> models.VaultView:
        """Make a newer master key and put all secrets under it while everything goes on.

        While an earlier rotation is under way, this goes on with that one. The older key is forgotten ten
        minutes after the last secret has left it. For a user token of a platform admin; not for a token
        that is limited to one workspace.
        """
        return self._transport.call(
            operations.ROTATE_VAULT,
            models.VaultView,
            path={},
            key=idempotency_key,
        )


class Webhooks(Resource):
    """Deliveries from other services, verified by signatures; what was refused, and replay."""

    def list(
        self,
        *,
        agent_id: str | None = None,
        refusing: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        workspace_id: str | None = None,
    ) -> models.WebhookPage:
        """List the addresses of a workspace's agents, and how much was refused of what came there.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_WEBHOOKS,
            models.WebhookPage,
            path={"workspace_id": workspace_id},
            query={"zombie_id": agent_id, "refusing": refusing, "limit": limit, "cursor": cursor},
        )

    def each(
        self,
        *,
        agent_id: str | None = None,
        refusing: bool | None = None,
        limit: int | None = None,
        workspace_id: str | None = None,
    ) -> Iterator[models.WebhookItem]:
        """List the addresses of a workspace's agents, and how much was refused of what came there. All of them, page by page."""
        return self._transport.walk(
            lambda cursor: self.list(
                agent_id=agent_id, refusing=refusing, limit=limit, cursor=cursor, workspace_id=workspace_id
            )
        )

    def verify(
        self,
        agent_id: str,
        *,
        headers: dict[str, str],
        body: str | None = None,
        body_base64: str | None = None,
        source: str | None = None,
        received_at: int | None = None,
        workspace_id: str | None = None,
    ) -> models.Verified:
        """Say whether a sample of a webhook is genuine, and if not, why not.

        The answer never holds a secret, nor the signature that would be right. For an API key or a user
        token, from the role operator on.
        """
        return self._transport.call(
            operations.VERIFY_WEBHOOK,
            models.Verified,
            path={"workspace_id": workspace_id, "zombie_id": agent_id},
            body={"headers": headers}
            | given({"body": body, "body_base64": body_base64, "source": source, "received_at": received_at}),
        )


class Workspaces(Resource):
    """Make, rename, pause and list workspaces."""

    def list(self) -> models.WorkspaceList:
        """List the tenant's workspaces, or the one that the token is limited to.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.LIST_WORKSPACES,
            models.WorkspaceList,
            path={},
        )

    def create(self, *, name: str | None = None, idempotency_key: str | None = None) -> models.WorkspaceMade:
        """Make a workspace.

        For an API key or a user token, from the role user on; not for a token that is limited to one
        workspace.
        """
        return self._transport.call(
            operations.CREATE_WORKSPACE,
            models.WorkspaceMade,
            path={},
            body=given({"name": name}),
            key=idempotency_key,
        )

    def get(self, *, workspace_id: str | None = None) -> models.WorkspaceItem:
        """Show one workspace.

        For an API key or a user token, from the role viewer on.
        """
        return self._transport.call(
            operations.GET_WORKSPACE,
            models.WorkspaceItem,
            path={"workspace_id": workspace_id},
        )

    def change(
        self, *, name: str | None = None, paused: bool | None = None, workspace_id: str | None = None
    ) -> models.WorkspaceItem:
        """Rename a workspace, pause it, or let it go on.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.CHANGE_WORKSPACE,
            models.WorkspaceItem,
            path={"workspace_id": workspace_id},
            body=given({"name": name, "paused": paused}),
        )

    def get_applied(self, *, workspace_id: str | None = None) -> models.AppliedView:
        """Show what folders have applied to the workspace, and whether one is being applied.

        For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.GET_APPLIED,
            models.AppliedView,
            path={"workspace_id": workspace_id},
        )

    def put_applied(
        self,
        *,
        phase: models.AnyPhase,
        revision: int,
        holder: str,
        items: dict[str, models.AppliedItem] | None = None,
        workspace_id: str | None = None,
    ) -> models.AppliedView:
        """Write down what is about to be applied, or was; refused where another has written meanwhile.

        Whoever has begun and says nothing for 20 s has lost their turn. The same request once more changes
        nothing. For an API key or a user token, from the role operator on.
        """
        return self._transport.call(
            operations.PUT_APPLIED,
            models.AppliedView,
            path={"workspace_id": workspace_id},
            body={"phase": phase, "revision": revision, "holder": holder} | given({"items": items}),
        )


class Groups:
    """All groups, as attributes."""

    def __init__(self, transport: Transport) -> None:
        self.agent_events = AgentEvents(transport)
        self.agent_keys = AgentKeys(transport)
        self.agents = Agents(transport)
        self.approvals = Approvals(transport)
        self.audit = Audit(transport)
        self.billing = Billing(transport)
        self.chat = Chat(transport)
        self.credential_grants = CredentialGrants(transport)
        self.credentials = Credentials(transport)
        self.deliveries = Deliveries(transport)
        self.device_logins = DeviceLogins(transport)
        self.erasures = Erasures(transport)
        self.failures = Failures(transport)
        self.files = Files(transport)
        self.fleet = Fleet(transport)
        self.follow_ups = FollowUps(transport)
        self.grants = Grants(transport)
        self.harness = Harness(transport)
        self.jobs = Jobs(transport)
        self.keys = Keys(transport)
        self.mcp_servers = McpServers(transport)
        self.members = Members(transport)
        self.memories = Memories(transport)
        self.model_keys = ModelKeys(transport)
        self.models = Models(transport)
        self.platform_keys = PlatformKeys(transport)
        self.proposals = Proposals(transport)
        self.provider = Provider(transport)
        self.retention = Retention(transport)
        self.runner = Runner(transport)
        self.runners = Runners(transport)
        self.schedules = Schedules(transport)
        self.scores = Scores(transport)
        self.service = Service(transport)
        self.sessions = Sessions(transport)
        self.sign_ins = SignIns(transport)
        self.vault = Vault(transport)
        self.workspaces = Workspaces(transport)
