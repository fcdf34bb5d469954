"""The commands of ``sexton``: where each is, and its help in a sentence, so that lists import none."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    place: str
    """The command's module beside this one, and its name there."""
    summary: str
    """The first sentence of its help, held to it by a test."""


COMMANDS: Final[Mapping[str, Entry]] = {
    "up": Entry("server:up", "Start everything here: database, server and local runners."),
    "serve": Entry("server:serve", "Start the server alone; runners are started elsewhere."),
    "migrate": Entry("migrate:migrate", "Bring the database's schema up to date, and start nothing."),
    "runner": Entry(
        "runner:runner", "Start a runner on this machine; list, enrol, cordon, drain and revoke runners."
    ),
    "image": Entry(
        "image:image", "Make, list, check and remove the images that runs on this machine may have."
    ),
    "demo": Entry("server:demo", "See the whole path work with real parts, from an empty folder."),
    "practice": Entry(
        "practice:practice",
        "Be a git host, and a model that follows a script, for agents to practise with on this machine.",
    ),
    "sign-in-link": Entry(
        "sign_in_link:sign_in_link",
        "Print a link that signs the server's first admin in with a browser, once, within an hour.",
    ),
    "login": Entry("login:login", "Sign in, and keep the token for later commands."),
    "logout": Entry("whoami:logout", "Sign out of a server, and forget the token that is kept for it."),
    "whoami": Entry("whoami:whoami", "Ask the server whom it takes you for, and what you may do."),
    "sign-ins": Entry("sign_ins:sign_ins", "List and end your sign-ins, in browsers and terminals."),
    "member": Entry(
        "members:member", "List, invite, promote, suspend and remove the members of your tenant."
    ),
    "session": Entry(
        "sessions:session",
        "List and end sessions in browsers and terminals: your own, and as an admin anybody's.",
    ),
    "workspace": Entry("workspace:workspace", "List, make and choose workspaces."),
    "keys": Entry("keys:keys", "List, make, revoke and delete API keys."),
    "agent": Entry("agent:agent", "Write, try, install, update, check, look at, stop and delete agents."),
    "apply": Entry(
        "apply:apply",
        "Make workspaces as the files of a folder say; done twice, the second time changes nothing.",
    ),
    "export": Entry(
        "export:export",
        "Write the workspace's agents, credentials by name, MCP servers and settings to DIR.",
    ),
    "steer": Entry("events:steer", "Wake an AGENT with a MESSAGE and show its answer as it comes."),
    "events": Entry("events:events", "List events, newest first; replay or cancel many of them."),
    "throughput": Entry(
        "throughput:throughput",
        "Show how many events came in each of the last minutes, and what became of them.",
    ),
    "queue": Entry(
        "queue:queue",
        "Show how long events wait for a runner, by the labels that they need, and what leases have left.",
    ),
    "jobs": Entry("jobs:jobs", "List bulk jobs, see how far one is, pause it, let it go on, or stop it."),
    "failures": Entry(
        "failures:failures",
        "List what fails alike, the last seen first; mark it as known, mute it, or have it done again.",
    ),
    "schedule": Entry(
        "schedule:schedule",
        "List schedules with their next and last firings; pause, resume or run one now.",
    ),
    "webhook": Entry(
        "webhook:webhook",
        "List the addresses of webhooks and what came there, show a delivery, or replay a refused one.",
    ),
    "event": Entry("event:event", "Show one event whole, say why it waits, or wait for its end."),
    "files": Entry("files:files", "List, get and delete the files that an event's runs left."),
    "transcript": Entry(
        "transcript:transcript",
        "Show what the attempts at the EVENT of this id said and did, in order.",
    ),
    "workspace-files": Entry(
        "workspace_files:workspace_files", "Show and reset the folder that an agent keeps from run to run."
    ),
    "watch": Entry(
        "events:watch",
        "Show what an AGENT does while it does it, or all agents of the workspace, until Ctrl-C.",
    ),
    "replay": Entry("events:replay", "Do the EVENT of this id again, as a new one."),
    "trigger": Entry(
        "trigger:trigger",
        "Send an AGENT a delivery of SOURCE, signed as its sender signs, and say what the answer was.",
    ),
    "cancel": Entry("events:cancel", "Cancel the EVENT of this id; one that runs is stopped."),
    "approvals": Entry("approvals:approvals", "List, show, approve and deny what agents ask people for."),
    "grants": Entry("grants:grants", "List, request, approve, deny and revoke grants of services to agents."),
    "credentials": Entry(
        "credentials:credentials",
        "List, set, delete and lend the workspace's credentials, and keep the key of its model provider.",
    ),
    "mcp-server": Entry(
        "mcp_server:mcp_server", "List, set and remove the MCP servers that the workspace gives its agents."
    ),
    "mcp": Entry(
        "mcp:mcp", "Say how an assistant connects to the server by MCP; or be its way there, with --stdio."
    ),
    "proposals": Entry("proposals:proposals", "List, show, approve and reject an agent's proposals."),
    "balance": Entry("money:balance", "Show your tenant's balance, and whether it stops work."),
    "charges": Entry("money:charges", "Show what your tenant's runs were billed, by agent, model or day."),
    "credit": Entry("money:credit", "Add DOLLARS to a tenant's balance; work that waited for it goes on."),
    "top": Entry(
        "top:top", "Show the queue, leases with the time they have left, runners and actors, until Ctrl-C."
    ),
    "tree": Entry(
        "actor:tree",
        "Show the supervision tree, or all actors of a KIND, with what has crashed; for platform admins.",
    ),
    "actor": Entry(
        "actor:actor", "Show one actor and what it handles; restart or stop it; for platform admins."
    ),
    "lease": Entry("lease:lease", "List the leases that runners hold; for platform admins."),
    "audit": Entry("audit:audit", "Show, export and verify the log of who changed what; for admins."),
    "models": Entry(
        "set_up:models",
        "List the models that the server offers, and what a million of their tokens costs.",
    ),
    "settings": Entry(
        "set_up:settings",
        "List the options that the server was started with, and where each comes from; for platform admins.",
    ),
    "vault": Entry("vault:vault", "Look after the master keys; for platform admins."),
    "doctor": Entry(
        "doctor:doctor", "Check server, clock, token, workspace, and this machine's sandbox and database."
    ),
}

AGENT_COMMANDS: Final[Mapping[str, Entry]] = {
    "init": Entry(
        "agent_trials:init",
        "Write the files of a new agent of this NAME, with comments and a sample event, ready to be tried.",
    ),
    "run": Entry(
        "agent_trials:run",
        "Try the agent of DIR on one event, without a server: in the runner's own sandbox and loop.",
    ),
    "versions": Entry("agent_versions:versions", "List the versions of an agent's files, newest first."),
    "diff": Entry(
        "agent_versions:diff",
        "Show what a VERSION (its number or id) of an agent's files would change of the active one.",
    ),
    "roll-back": Entry(
        "agent_versions:roll_back",
        "Make a VERSION (its number or id) of an agent's files the active one again, from its next lease on.",
    ),
    "canary": Entry(
        "agent_canary:canary",
        "Try a version of an agent's files on a share of its events; promote or withdraw it.",
    ),
    "pin": Entry(
        "agent_pins:pin",
        "Keep an agent at its active version, or go back to VERSION (its number or id) and keep it there.",
    ),
    "unpin": Entry(
        "agent_pins:unpin",
        "Let a pinned agent go; the files that it was given meanwhile count from its next lease on.",
    ),
    "memories": Entry("memories:memories", "Show what an agent remembers, newest first."),
    "forget": Entry("memories:forget", "Make an agent forget the entry under this KEY."),
}
"""The commands of ``sexton agent`` that stand in modules of their own."""
