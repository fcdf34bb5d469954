"""What each group of routes is for, as the OpenAPI document and its readers show it."""

from collections.abc import Mapping
from typing import Final

TAGS: Final[Mapping[str, str]] = {
    "Agents": "Install agents, change them, stop them and send them messages.",
    "Agent profiles": "How an agent has done: its status, trust and scores.",
    "Agent keys": "Keys for programs that act for one agent and for no other.",
    "Events": "What woke an agent and what came of it; the activity stream; replay and cancel.",
    "Bulk jobs": "Replay or cancel many events by a filter; progress, pause and stop.",
    "Failures": "What fails alike, in groups: known, muted, or done again.",
    "Files": "What runs leave: listed, read whole or in ranges, deleted.",
    "Schedules": "When agents fire by the clock: next, last and missed; pause, resume, run now.",
    "Follow-ups": "Wake-ups that a run has asked for, up to thirty days ahead.",
    "Approvals": "Gates: what a run may not do before a person has said yes.",
    "Integrations": "Grants: which services an agent may use, and who decided so.",
    "Webhooks": "Deliveries from other services, verified by signatures; what was refused, and replay.",
    "Proposals": "Changes to an agent's files that a run or a person proposes and people decide.",
    "Harness": "Versions of an agent's files: drafted, compiled, activated.",
    "Memories": "What an agent remembers from one run to the next.",
    "Assistants": "The Model Context Protocol: assistants use this interface as tools.",
    "Preview": "A language model's answer to a draft, streamed.",
    "Credentials": "Secrets of a workspace; they can be written, and never read back.",
    "MCP servers": "Servers of the Model Context Protocol that a workspace declares for its agents.",
    "Models and keys": "Which language model a tenant uses, and with whose key.",
    "Vault": "The master key that seals all secrets.",
    "Workspaces": "Make, rename, pause and list workspaces.",
    "API keys": "Keys of a tenant, shown once when they are made.",
    "Members": "Who is admitted to a tenant, as what, and until when.",
    "Sessions": "Where people of a tenant are signed in, for them and for its admins.",
    "Auth sessions": "Device login: a terminal asks, a signed-in person approves.",
    "Audit": "Who changed what, when and from where; each line is bound to the one before it.",
    "Browser": "Pages and forms of the dashboard, and signing in and out.",
    "Sign-ins": "Sign-in sessions of people and their terminals: which there are, and ending them.",
    "Chat": "Approvals in a chat platform.",
    "Billing": "Balance, charges, plans and budgets.",
    "Catalogue": "The public list of models and their prices.",
    "Runner plane": "What runners call: leases, renewals, activity, gates and reports.",
    "Fleet": "Runners, the queue and the supervision tree, for platform admins.",
    "Service": "Health, metrics, signing keys and the description of this interface.",
    "Removed": "Routes of an earlier pipeline. All of them answer 410; only their shapes are kept.",
}
"""By tag, in the order in which a reader meets them."""
