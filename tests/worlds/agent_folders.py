"""Folders of agents, as people write them."""

from pathlib import Path

SKILL = """\
---
name: {name}
description: Does what the test wants.
version: 1.0.0
---
# At work

```sh
{script}
```
"""
TRIGGER = """\
---
name: {name}
triggers:
  - type: webhook
    source: nobody
runtime: command
{config}
---
"""
ECHO = 'cat > event.json\nprintf \'{"answer": "done"}\\n\''


def agent_folder(root: Path, name: str = "echo", script: str = ECHO, config: str = "") -> Path:
    """A command agent that nobody but a message wakes."""
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=name, script=script))
    (folder / "TRIGGER.md").write_text(TRIGGER.format(name=name, config=config))
    return folder
