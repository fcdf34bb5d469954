"""Folders of agents, as people write them."""

from pathlib import Path

from tests.worlds.samples import NOBODY, command_body, skill_md, trigger_md

ECHO = 'cat > event.json\nprintf \'{"answer": "done"}\\n\''


def agent_folder(root: Path, name: str = "echo", script: str = ECHO, config: str = "") -> Path:
    """A command agent that nobody but a message wakes."""
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(skill_md(name, body=command_body(script), version="1.0.0"))
    (folder / "TRIGGER.md").write_text(trigger_md(name, f"runtime: command\n{config}", trigger=NOBODY))
    return folder
