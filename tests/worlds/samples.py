"""Sample agents, secrets and ids, the same for every world."""

from collections.abc import Callable
from uuid import UUID

START_MS = 1_732_060_800_000
SECRET = "It's a Secret to Everybody"

GITHUB = "type: webhook\n    source: github\n    signature:\n      secret_ref: github-hook"
"""Signed with the credential ``github-hook``."""
NOBODY = "type: webhook\n    source: nobody"
YEARLY = 'type: cron\n    schedule: "0 0 1 1 *"'
"""So rare that no test meets it."""


def skill_md(
    name: str = "doctor",
    *,
    body: str = "Look at the failed run and say why it failed.\n",
    tags: str = "",
    model: str = "",
    version: str = "0.1.0",
) -> str:
    """A SKILL.md; ``tags`` are separated by commas."""
    lines = [
        "---",
        f"name: {name}",
        "description: Looks at failed deployments.",
        f"version: {version}",
        f"tags: [{tags}]",
        *([f"model: {model}"] if model else []),
        "---",
    ]
    return "\n".join(lines) + f"\n{body}"


def trigger_md(name: str = "doctor", config: str = "", *, trigger: str = GITHUB) -> str:
    """A TRIGGER.md; ``config`` is further lines, which may begin with more triggers."""
    return f"---\nname: {name}\ntriggers:\n  - {trigger}\n{config}\n---\n"


def command_body(script: str) -> str:
    """The body of the SKILL.md of a command agent."""
    return f"# At work\n\n```sh\n{script}\n```\n"


def agent_files(
    name: str = "doctor",
    config: str = "",
    *,
    trigger: str = GITHUB,
    tags: str = "",
    body: str = "Look at the failed run and say why it failed.\n",
    model: str = "",
) -> dict[str, str]:
    """Both files, as the body of a request that installs the agent."""
    return {
        "source_markdown": skill_md(name, body=body, tags=tags, model=model),
        "trigger_markdown": trigger_md(name, config, trigger=trigger),
    }


class Ids:
    """UUIDv7 of that clock, in the order in which they are made; by itself the clock stands still."""

    def __init__(self, now_ms: Callable[[], int] = lambda: START_MS) -> None:
        self._now_ms = now_ms
        self._made = 0

    def __call__(self) -> UUID:
        self._made += 1
        return UUID(int=self._now_ms() << 80 | 7 << 76 | 2 << 62 | self._made)


class PlainSealer:
    """Seals nothing, but opens only for the identity that it was sealed for."""

    def seal(self, plaintext: bytes, identity: bytes) -> bytes:
        return identity + b"\0" + plaintext

    def open(self, sealed: bytes, identity: bytes) -> bytes:
        assert sealed.startswith(identity + b"\0")
        return sealed[len(identity) + 1 :]
