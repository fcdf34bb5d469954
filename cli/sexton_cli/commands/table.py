"""The commands of ``sexton``: where each is, and its help in a sentence, so that lists import none."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Entry(NamedTuple):
    place: str
    """The command's module beside this one, and its name there."""
    summary: str
    """The first sentence of its help, held to it by a test."""


Verbs = Mapping[str, Entry]

SERVER: Final[Verbs] = {
    "up": Entry("server:up", "Start everything here: database, server and local runners."),
    "serve": Entry("server:serve", "Start the server alone; runners are started elsewhere."),
    "migrate": Entry("migrate:migrate", "Bring the database's schema up to date, and start nothing."),
    "demo": Entry("server:demo", "See the whole path work with real parts, from an empty folder."),
    "practice": Entry(
        "practice:practice",
        "Be a git host, and a model that follows a script, for agents to practise with on this machine.",
    ),
    "settings": Entry(
        "set_up:settings",
        "List the options that the server was started with, and where each comes from; for platform admins.",
    ),
    "doctor": Entry(
        "doctor:doctor", "Check server, clock, token, workspace, and this machine's sandbox and database."
    ),
    "version": Entry(
        "version:version",
        "Show the release that is installed here, its Python, and the schema that it brings; asks no server.",
    ),
    "health": Entry(
        "server_state:health",
        "Say whether the server answers and is ready; it asks for no token, and fails unless it is.",
    ),
}
AUTH: Final[Verbs] = {
    "login": Entry("login:login", "Sign in, and keep the token for later commands."),
    "logout": Entry("whoami:logout", "Sign out of a server, and forget the token that is kept for it."),
    "whoami": Entry("whoami:whoami", "Ask the server whom it takes you for, and what you may do."),
    "link": Entry(
        "sign_in_link:sign_in_link",
        "Print a link that signs the server's first admin in with a browser, once, within an hour.",
    ),
}
WORKSPACE: Final[Verbs] = {
    "apply": Entry(
        "apply:apply",
        "Make workspaces as the files of a folder say; done twice, the second time changes nothing.",
    ),
    "export": Entry(
        "export:export", "Write the workspace's agents, credentials by name, MCP servers and settings to DIR."
    ),
    "throughput": Entry(
        "throughput:throughput",
        "Show how many events came in each of the last minutes, and what became of them.",
    ),
    "queue": Entry(
        "queue:queue",
        "Show how long events wait for a runner, by the labels that they need, and what leases have left.",
    ),
}
EVENT: Final[Verbs] = {
    "list": Entry("events:list_", "List events, newest first: of one AGENT, or of the whole workspace."),
    "send": Entry("events:steer", "Wake an AGENT with a MESSAGE and show its answer as it comes."),
    "watch": Entry(
        "events:watch",
        "Show what an AGENT does while it does it, or all agents of the workspace, until Ctrl-C.",
    ),
    "replay": Entry("events:replay", "Do the EVENT of this id again, as a new one."),
    "cancel": Entry("events:cancel", "Cancel the EVENT of this id; one that runs is stopped."),
    "transcript": Entry(
        "transcript:transcript", "Show what the attempts at the EVENT of this id said and did, in order."
    ),
    "frames": Entry(
        "event_frames:frames",
        "Show the raw frames of the EVENT of this id, the oldest first; they are kept for a day.",
    ),
    "trace": Entry(
        "trace:trace", "Draw what the EVENT of this id did when, and what each part cost; checks the sum."
    ),
}
WEBHOOK: Final[Verbs] = {
    "send": Entry(
        "trigger:trigger",
        "Send an AGENT a delivery of SOURCE, signed as its sender signs, and say what the answer was.",
    ),
    "verify": Entry(
        "webhook_check:verify",
        "Say what would become of a delivery to an AGENT, without waking it; fails unless it is good.",
    ),
}
BILLING: Final[Verbs] = {
    "balance": Entry("money:balance", "Show your tenant's balance, and whether it stops work."),
    "charges": Entry("money:charges", "Show what your tenant's runs were billed, by agent, model or day."),
    "credit": Entry("money:credit", "Add DOLLARS to a tenant's balance; work that waited for it goes on."),
}
MODEL: Final[Verbs] = {
    "list": Entry(
        "set_up:models", "List the models that the server offers, and what a million of their tokens costs."
    ),
}
FLEET: Final[Verbs] = {
    "top": Entry(
        "top:top", "Show the queue, leases with the time they have left, runners and actors, until Ctrl-C."
    ),
    "queue": Entry(
        "server_state:queue",
        "Show what waits for a runner on the whole platform, by labels; for platform admins.",
    ),
}
ACTOR: Final[Verbs] = {
    "tree": Entry(
        "actor:tree",
        "Show the supervision tree, or all actors of a KIND, with what has crashed; for platform admins.",
    ),
}
ASSISTANT: Final[Verbs] = {
    "connect": Entry(
        "mcp:mcp", "Say how an assistant connects to the server by MCP; or be its way there, with --stdio."
    ),
}
AGENT_COMMANDS: Final[Verbs] = {
    "check": Entry("agent_files:check", "Check the SKILL.md and TRIGGER.md of DIR without any server."),
    "install": Entry(
        "agent_files:install",
        "Install the agent of DIR; its approval token, and secrets in addresses, are shown this once.",
    ),
    "update": Entry(
        "agent_files:update", "Give an agent the files of DIR; they count from its next event on."
    ),
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
    "shadow": Entry(
        "agent_shadows:shadow",
        "Run saved events of an agent under other files, without effects, and compare.",
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
MEMORY: Final[Verbs] = {"list": AGENT_COMMANDS["memories"], "forget": AGENT_COMMANDS["forget"]}
HARNESS: Final[Verbs] = {"list": AGENT_COMMANDS["versions"], "diff": AGENT_COMMANDS["diff"]}

NOUNS: Final[Verbs] = {
    "server": Entry(
        "nouns:server",
        "Start a server, bring its schema up to date, and see how it is and how it was set up.",
    ),
    "auth": Entry("nouns:auth", "Sign in and out, and ask whom the server takes you for."),
    "workspace": Entry(
        "workspace:workspace",
        "List, make, choose, show, rename and pause workspaces, and make them as files say.",
    ),
    "agent": Entry("agent:agent", "Write, try, install, update, check, look at, stop and delete agents."),
    "harness": Entry(
        "harness:harness", "Draft, compile, activate, list and compare the versions of an agent's files."
    ),
    "memory": Entry("nouns:memory", "List and forget what an agent remembers."),
    "score": Entry("scores:score", "List how an agent's finished runs were scored."),
    "scoring": Entry(
        "scores:scoring", "Show and set how much of their score history the workspace's agents are shown."
    ),
    "retention": Entry(
        "retention:retention", "Show, set and try out how many days the workspace keeps what it has."
    ),
    "follow-up": Entry(
        "follow_ups:follow_up", "List and cancel what an agent has asked to be woken for later."
    ),
    "schedule": Entry(
        "schedule:schedule", "List schedules with their next and last firings; pause, resume or run one now."
    ),
    "event": Entry(
        "event:event",
        "List, send, show, watch, replay and cancel events; say why one waits, or wait for its end.",
    ),
    "events": Entry("events:events", "List events, newest first; export, replay or cancel many of them."),
    "webhook": Entry(
        "webhook:webhook",
        "List the addresses of webhooks and what came there; show, replay, send or verify a delivery.",
    ),
    "files": Entry("files:files", "List, get and delete the files that an event's runs left."),
    "workspace-files": Entry(
        "workspace_files:workspace_files", "Show and reset the folder that an agent keeps from run to run."
    ),
    "jobs": Entry("jobs:jobs", "List bulk jobs, see how far one is, pause it, let it go on, or stop it."),
    "erasures": Entry(
        "erasures:erasures",
        "Count what a person's value stands in, erase it, and see the receipts; for admins.",
    ),
    "failures": Entry(
        "failures:failures",
        "List what fails alike, the last seen first; mark it as known, mute it, or have it done again.",
    ),
    "approvals": Entry("approvals:approvals", "List, show, approve and deny what agents ask people for."),
    "grants": Entry("grants:grants", "List, request, approve, deny and revoke grants of services to agents."),
    "credentials": Entry(
        "credentials:credentials",
        "List, set, delete and lend the workspace's credentials, and keep the key of its model provider.",
    ),
    "proposals": Entry("proposals:proposals", "List, show, make, approve and reject an agent's proposals."),
    "mcp-server": Entry(
        "mcp_server:mcp_server", "List, set and remove the MCP servers that the workspace gives its agents."
    ),
    "assistant": Entry("nouns:assistant", "Connect an assistant to the server by MCP."),
    "chat": Entry(
        "chat:chat", "Show, install, test and remove the Slack channel that is asked for approvals."
    ),
    "model": Entry(
        "model:model",
        "List the models that the server offers, and ask the one that runs of the workspace use.",
    ),
    "provider": Entry(
        "model_keys:provider", "Show, choose and clear the model and the key that your tenant's runs use."
    ),
    "platform-key": Entry(
        "model_keys:platform_key",
        "List, set and delete whose model keys are lent to the whole tenant; for admins.",
    ),
    "agent-key": Entry(
        "agent_keys:agent_key",
        "List, make and delete the keys with which programs outside act for one agent.",
    ),
    "keys": Entry("keys:keys", "List, make, revoke and delete API keys."),
    "member": Entry(
        "members:member", "List, invite, promote, suspend and remove the members of your tenant."
    ),
    "session": Entry(
        "sessions:session",
        "List and end sessions in browsers and terminals: your own, and as an admin anybody's.",
    ),
    "sign-ins": Entry("sign_ins:sign_ins", "List and end your sign-ins, in browsers and terminals."),
    "billing": Entry(
        "plan:billing", "Show balance, plan and charges; add credit, change the plan, tell of payments."
    ),
    "runner": Entry(
        "runner:runner",
        "Start a runner on this machine; list, enrol, cordon, drain and revoke those of the fleet.",
    ),
    "image": Entry(
        "image:image", "Make, list, check and remove the images that runs on this machine may have."
    ),
    "fleet": Entry(
        "nouns:fleet", "Watch queue, leases, runners and actors of the whole platform; for platform admins."
    ),
    "lease": Entry("lease:lease", "List the leases that runners hold; for platform admins."),
    "actor": Entry(
        "actor:actor",
        "Show the actors of a server and what one handles; restart or stop it; for platform admins.",
    ),
    "audit": Entry("audit:audit", "Show, export and verify the log of who changed what; for admins."),
    "backup": Entry(
        "backup:backup", "Back a serving database and its keys up; verify, list, prune and restore backups."
    ),
    "archive": Entry(
        "archive:archive", "List, verify and read an archive of what went by age; asks no server."
    ),
    "vault": Entry("vault:vault", "Look after the master keys; for platform admins."),
    "completion": Entry(
        "completion:completion", "Print the script that has a shell complete commands, options and names."
    ),
    "man": Entry("manual:man", "Print a manual page, or write all of them to a folder."),
}
"""Each is followed by a verb, but for the last two."""

SHORT_FORMS: Final[Mapping[str, tuple[str, str]]] = {
    "up": ("server", "up"),
    "serve": ("server", "serve"),
    "migrate": ("server", "migrate"),
    "restore": ("backup", "restore"),
    "demo": ("server", "demo"),
    "practice": ("server", "practice"),
    "sign-in-link": ("auth", "link"),
    "login": ("auth", "login"),
    "logout": ("auth", "logout"),
    "whoami": ("auth", "whoami"),
    "apply": ("workspace", "apply"),
    "export": ("workspace", "export"),
    "steer": ("event", "send"),
    "watch": ("event", "watch"),
    "replay": ("event", "replay"),
    "cancel": ("event", "cancel"),
    "transcript": ("event", "transcript"),
    "trace": ("event", "trace"),
    "trigger": ("webhook", "send"),
    "throughput": ("workspace", "throughput"),
    "queue": ("workspace", "queue"),
    "balance": ("billing", "balance"),
    "charges": ("billing", "charges"),
    "credit": ("billing", "credit"),
    "models": ("model", "list"),
    "mcp": ("assistant", "connect"),
    "top": ("fleet", "top"),
    "tree": ("actor", "tree"),
    "settings": ("server", "settings"),
    "doctor": ("server", "doctor"),
    "version": ("server", "version"),
}
"""What a word alone stands for: a noun and its verb."""

BACKUP: Final[Verbs] = {
    "create": Entry(
        "backup_create:create", "Back up the database of a data folder, or your own, while it serves."
    ),
    "restore": Entry("backup_restore:restore", "Restore a backup into an empty folder or an empty database."),
}

VERBS: Final[Mapping[str, Verbs]] = {
    "server": SERVER,
    "auth": AUTH,
    "workspace": WORKSPACE,
    "agent": AGENT_COMMANDS,
    "harness": HARNESS,
    "memory": MEMORY,
    "event": EVENT,
    "webhook": WEBHOOK,
    "model": MODEL,
    "billing": BILLING,
    "fleet": FLEET,
    "actor": ACTOR,
    "assistant": ASSISTANT,
    "backup": BACKUP,
}
"""The verbs of nouns that stand in modules of their own."""

COMMANDS: Final[Verbs] = {
    **NOUNS,
    **{word: VERBS[noun][verb] for word, (noun, verb) in SHORT_FORMS.items()},
}
