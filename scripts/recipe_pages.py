"""Writes the pages of recipes from their folders: ``python -m scripts.recipe_pages [--write]``.

Without ``--write`` it says which pages differ from what stands there, and ends with 1.
"""

import re
import sys
from pathlib import Path
from typing import Final

from sexton_actors.manifest.model import (
    CronTrigger,
    Manifest,
    Resources,
    Runtime,
    WebhookTrigger,
    WorkspaceKind,
)
from sexton_actors.manifest.parse import parse

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "examples"
PAGES: Final = ROOT / "docs" / "recipes"
OTHERS: Final = frozenset({"night-watch"})
"""Examples that are no recipes: there for the demo alone."""
FRONT: Final = re.compile(r"\A---\n(.*?)^---\n(.*)\Z", re.DOTALL | re.MULTILINE)
SECRET: Final = re.compile(r"\$\{secrets\.([\w-]+)\.(\w+)\}")
INDEX: Final = """\
# Recipes

Agents that work as they are. Each is a folder of `examples/`: copy it, put your own names into it, and
install it. A test carries every one of them out, in a real sandbox, against stand-ins of the services
that they talk to.

```sh
cp -r examples/certificate-watch .
sexton agent check certificate-watch
sexton agent install certificate-watch
```

| Recipe | What it does | Wakes by | Runs | Uses |
|---|---|---|---|---|
"""


def recipes() -> list[str]:
    """The names of all recipes, in order."""
    return sorted(path.parent.name for path in EXAMPLES.glob("*/SKILL.md") if path.parent.name not in OTHERS)


def title(name: str) -> str:
    """The name as a heading.

    >>> title("slow-query-report")
    'Slow query report'
    """
    return name.replace("-", " ").capitalize()


def _manifest(name: str) -> Manifest:
    found = parse(*(_text(name, file) for file in ("SKILL.md", "TRIGGER.md")))
    if not isinstance(found, Manifest):
        raise SystemExit(f"examples/{name} is no agent: {found}")
    return found


def _text(name: str, file: str) -> str:
    return (EXAMPLES / name / file).read_text(encoding="utf-8")


def wakes_by(manifest: Manifest) -> list[str]:
    """What wakes it, a line each."""
    told = [_trigger(one) for one in manifest.triggers]
    return [*told, "a message with files"] if "in" in _folders(manifest) else told


def _trigger(trigger: WebhookTrigger | CronTrigger) -> str:
    if isinstance(trigger, CronTrigger):
        return f"cron `{trigger.schedule}`, {trigger.timezone}"
    kinds = ", ".join(f"`{kind}`" for kind in trigger.events or ())
    signed = "" if trigger.signature else ", at a secret address"
    return f"webhook `{trigger.source}`{': ' if kinds else ''}{kinds}{signed}"


def _folders(manifest: Manifest) -> set[str]:
    """Which of the folders `in` and `out` its program works with."""
    return set(re.findall(r"Path\(\"(in|out)[\"/]", manifest.instructions))


def runs(manifest: Manifest) -> str:
    """What carries it out."""
    if manifest.runtime is Runtime.AGENT:
        return "a model"
    return "a program (`python`)" if "\n```python" in manifest.instructions else "a program (`sh`)"


def uses(manifest: Manifest) -> list[str]:
    """What it uses of the product."""
    hosts = [*manifest.network_allow, *dict.fromkeys(rule.host for rule in manifest.network_rules)]
    rules = manifest.gates.rules
    tools = [tool for tool in manifest.tools if tool not in {"http_request", "deploy"}]
    asks = any(rule.behavior == "approve" for rule in rules) or '"approve"' in manifest.instructions
    candidates = (
        ("a kept folder", manifest.workspace is WorkspaceKind.KEEP),
        ("an approval", asks),
        ("rules that deny", any(rule.behavior == "deny" for rule in rules)),
        ("an anomaly rule", bool(manifest.gates.anomaly_rules)),
        ("files that it leaves", "out" in _folders(manifest)),
        (f"the credentials {_listed(manifest.credentials)}", len(manifest.credentials) > 1),
        (f"the credential {_listed(manifest.credentials)}", len(manifest.credentials) == 1),
        ("an integration that is granted", bool(manifest.integrations)),
        (f"the hosts {_listed(hosts)}", len(hosts) > 1),
        (f"the host {_listed(hosts)}", len(hosts) == 1),
        (f"the tools {_listed(tools)}", len(tools) > 1),
        (f"the tool {_listed(tools)}", len(tools) == 1),
        (f"the label {_listed(manifest.required_tags)}", bool(manifest.required_tags)),
        ("bounds of its own", manifest.resources != Resources()),
        ("a monthly budget", bool(manifest.budget and manifest.budget.monthly_nanos)),
    )
    return [said for said, holds in candidates if holds] or ["nothing else"]


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def page(name: str) -> str:
    """The page of one recipe."""
    manifest = _manifest(name)
    trigger = FRONT.match(_text(name, "TRIGGER.md"))
    if trigger is None:
        raise SystemExit(f"examples/{name}/TRIGGER.md has no front matter")
    about = trigger[2].strip().replace("\n# ", "\n## ")
    return "\n".join([
        f"# {title(name)}",
        "",
        manifest.description,
        "",
        f"- Wakes by {'; '.join(wakes_by(manifest))}",
        f"- Runs: {runs(manifest)}",
        f"- Uses {', '.join(uses(manifest))}",
        "",
        about.replace("# ", "## ", 1),
        "",
        "## Set it up",
        "",
        "```sh",
        f"cp -r examples/{name} .",
        *_credentials(name, manifest),
        f"sexton agent check {name}",
        f"sexton agent install {name}",
        "```",
        "",
        "## Try it first",
        "",
        "Without a server, on this machine:",
        "",
        "```sh",
        _trial(name, manifest),
        "```",
        "",
        "## TRIGGER.md",
        "",
        "```yaml",
        f"---\n{trigger[1]}---",
        "```",
        "",
        "## SKILL.md",
        "",
        "`````markdown",
        _text(name, "SKILL.md").rstrip(),
        "`````",
        "",
    ])  # fmt: skip


def _fields(name: str, manifest: Manifest) -> list[tuple[str, str]]:
    """The fields of credentials that a run is lent, as its files spell them."""
    found = SECRET.findall(_text(name, "SKILL.md") + _text(name, "TRIGGER.md"))
    return list(dict.fromkeys(one for one in found if one[0] in manifest.credentials))


def _credentials(name: str, manifest: Manifest) -> list[str]:
    """The commands that keep them: a credential of two fields is kept as one object."""
    fields: dict[str, list[str]] = {}
    for credential, field in _fields(name, manifest):
        fields.setdefault(credential, []).append(field)
    for trigger in manifest.webhook_triggers:
        if trigger.signature is not None:
            fields.setdefault(trigger.signature.secret_ref, []).insert(0, "webhook_secret")
    return [_kept(credential, names) for credential, names in fields.items()]


def _kept(credential: str, fields: list[str]) -> str:
    if len(fields) == 1:
        return f"sexton credentials set {credential} --field {fields[0]}"
    return f"sexton credentials set {credential} --file {credential}.json    # {{{_spelled(fields)}}}"


def _spelled(fields: list[str]) -> str:
    return ", ".join(f'"{field}": "…"' for field in fields)


def _trial(name: str, manifest: Manifest) -> str:
    payloads = sorted((EXAMPLES / name / "payloads").glob("*.json"))
    words = [f"sexton agent run {name}"]
    words.append(f"--event {name}/payloads/{payloads[0].name}" if payloads else "--message now")
    if "in" in _folders(manifest) and not payloads:
        words += [f"--file {file}" for file in re.findall(r"--file (\S+)", _text(name, "TRIGGER.md"))]
    words += [
        f"--secret {credential}.{field}=env:{credential.upper().replace('-', '_')}_{field.upper()}"
        for credential, field in _fields(name, manifest)
    ]
    return " \\\n    ".join(words)


def index() -> str:
    """The table of all."""
    rows = []
    for name in recipes():
        found = _manifest(name)
        cells = (
            f"[{title(name)}]({name}.md)",
            found.description,
            "; ".join(wakes_by(found)),
            runs(found),
            ", ".join(uses(found)),
        )
        rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return INDEX + "\n".join(rows) + "\n"


def pages() -> dict[str, str]:
    """All pages by the names of their files."""
    return {"index.md": index()} | {f"{name}.md": page(name) for name in recipes()}


def main(words: list[str]) -> int:
    """Compare, or write."""
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in PAGES.glob("*.md")}
    wrong = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    if "--write" in words:
        PAGES.mkdir(exist_ok=True)
        for name in wrong:
            if name in wanted:
                (PAGES / name).write_text(wanted[name], encoding="utf-8")
            else:
                (PAGES / name).unlink()
        return 0
    for name in wrong:
        print(f"docs/recipes/{name} is not what the examples say: run python -m scripts.recipe_pages --write")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
