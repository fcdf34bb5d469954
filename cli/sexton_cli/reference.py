"""Writes the pages about commands and settings from the code: ``python -m sexton_cli.reference DIR``."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from sexton_cli.commands.table import SHORT_FORMS
from sexton_cli.exits import MEANINGS
from sexton_cli.main import cli
from sexton_cli.operations import COMMAND_OF, WITHOUT, WITHOUT_PATHS, WITHOUT_TAGS
from sexton_cli.settings_page.page import settings_page

MADE: Final = (
    "<!-- Made by `python -m sexton_cli.reference docs/reference`: change the commands, not this page. -->"
)

VARIABLES: Final = (
    ("SEXTON_BASE_URL", "As `--base-url`."),
    ("SEXTON_TOKEN", "As `--token`, and out of sight of others on the machine."),
    ("SEXTON_WORKSPACE", "As `--workspace`."),
    ("SEXTON_BACKUPS", "As `--to` of `sexton backup`, and as `--from` of what reads backups."),
    ("SEXTON_BACKUP_RECIPIENT", "As `--recipient` of `sexton backup`."),
    ("XDG_CONFIG_HOME", "The folder in which `sexton/credentials.json` is kept, instead of `~/.config`."),
    ("BROWSER", "The program in which `sexton login` opens the approval page."),
    ("NO_COLOR", "Say it without bold letters and colours."),
)


def page_of_settings() -> str:
    """``docs/reference/settings.md``."""
    return settings_page(MADE, VARIABLES)


def cli_page() -> str:
    """``docs/reference/cli.md``."""
    root = click.Context(cli, info_name="sexton")
    lines = [
        "# Command line",
        "",
        MADE,
        "",
        cli.help or "",
        "",
        "[Use the command line](../how-to/use-the-command-line.md) says how to go about things with it;",
        "[Runner](runner.md) tells a runner's own options.",
        "",
        "## Options of all commands that call a server",
        "",
        "They stand before or after the command's name; the one nearer to its end wins.",
        "",
        *_options(root, frozenset()),
        "",
        "A token is taken from `--token`, then from `SEXTON_TOKEN`, then from standard input if",
        "`--token-stdin` asks for that, then from what `sexton login` has kept for this very server.",
        "`sexton login` itself reads a standard input that is no terminal without being asked.",
        "",
        "A noun is followed by a verb. It is understood in singular and plural, `sexton agents list` too.",
        "",
        "`--output` (`-o`) says how the answer is written: as a `table`, as `json` or `yaml`, or only the",
        "`name` of each thing, a line each: its name where commands take that, else its id. What an answer",
        "shows once, such as a key, then goes to standard error.",
        "",
        "Every command that is about an agent takes `--agent NAME`. Where its usage has AGENT as the first",
        "word, the name may stand there instead.",
        "",
        "For an id, its beginning or its end will do, from six digits on and where it fits one thing only of",
        "the newest thousand. Ids of one minute begin alike: take the end.",
        "",
        "## Short forms",
        "",
        "| Short | For |",
        "| --- | --- |",
        *(f"| `sexton {word}` | `sexton {' '.join(path)}` |" for word, path in SHORT_FORMS.items()),
        "",
        "## Commands",
        "",
        *_commands(root),
        "## Operations and their commands",
        "",
        "| Operation | Command |",
        "| --- | --- |",
        *(f"| `{name}` | `sexton {words}` |" for name, words in sorted(COMMAND_OF.items())),
        "",
        "These have none:",
        "",
        "| Operation | Why |",
        "| --- | --- |",
        *(f"| `{name}` | {why} |" for name, why in sorted(WITHOUT.items())),
        *(f"| those of *{tag}* | {why} |" for tag, why in WITHOUT_TAGS.items()),
        *(f"| others below `{path}` | {why} |" for path, why in WITHOUT_PATHS.items()),
        "",
        "## Exit statuses",
        "",
        "| Status | Meaning |",
        "| --- | --- |",
        *(f"| {status} | {meaning} |" for status, meaning in MEANINGS.items()),
        "",
        "What went wrong is one line on standard error: the code, what happened, what to do, and the id of",
        "the request, which finds it in the server's log. With `--json` it is one JSON document there:",
        '`{"error": {"code", "detail", "way_out", "request_id", "exit_status"}}`.',
        "[Error codes](errors.md) explains the codes.",
        "",
        "## Environment",
        "",
        "| Variable | Meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES),
        "",
    ]
    return "\n".join(lines)


def _commands(parent: click.Context) -> Iterator[str]:
    group = parent.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(parent):
        if group is cli and name in SHORT_FORMS:
            continue
        command = group.get_command(parent, name)
        if command is None:
            continue
        ctx = click.Context(command, info_name=name, parent=parent)
        if isinstance(command, click.Group):
            yield from _commands(ctx)
            continue
        yield from (f"### {ctx.command_path}", "", f"`{_usage(ctx)}`", "", *_prose(command), "")
        options = [*_options(ctx, _shared(parent))]
        if options:
            yield from (*options, "")


def _usage(ctx: click.Context) -> str:
    return " ".join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx)])


def _prose(command: click.Command) -> Iterator[str]:
    """The help as paragraphs: their lines were broken for the source."""
    paragraphs = (command.help or "").strip().split("\n\n")
    yield "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _shared(ctx: click.Context) -> frozenset[str]:
    return frozenset(param.name or "" for param in ctx.find_root().command.params)


def _options(ctx: click.Context, told: frozenset[str]) -> Iterator[str]:
    for param in ctx.command.params:
        record = param.get_help_record(ctx)
        if record is None or param.name in told or not isinstance(param, click.Option):
            continue
        words, meaning = record
        variable = f" Or `{param.envvar}` in the environment." if isinstance(param.envvar, str) else ""
        yield f"- `{words}`: {' '.join(meaning.split())}{variable}"


PAGES: Final[Mapping[str, Callable[[], str]]] = {"cli.md": cli_page, "settings.md": page_of_settings}
"""Each page with what makes it."""

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page(), encoding="utf-8")
