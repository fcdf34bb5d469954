"""``sexton man``: manual pages, made from the commands themselves."""

from importlib import import_module
from pathlib import Path

import click

from sexton_cli.commands.command import command
from sexton_cli.commands.table import NOUNS
from sexton_cli.exits import CONFIG, USAGE, Fault
from sexton_cli.fault_report import explain
from sexton_cli.id_parts import meant


@command()
@click.argument("noun", required=False)
@click.option(
    "--to",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write all pages into this folder, such as ~/.local/share/man/man1.",
)
@click.pass_context
def man(ctx: click.Context, *, noun: str | None, folder: Path | None) -> None:
    """Print a manual page, or write all of them to a folder.

    Without a NOUN it is the page of sexton itself. To read one: sexton man agent | man -l -
    """
    # It imports every command, so only here.
    pages: dict[str, str] = import_module("sexton_cli.man_pages").man_pages(ctx.find_root().command)
    name = "sexton.1" if noun is None else f"sexton-{noun}.1"
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file, text in pages.items():
                (folder / file).write_text(text, encoding="utf-8")
        except OSError as fault:
            ctx.exit(explain(Fault(f"{folder}: {fault.strerror}", "Name another folder.", status=CONFIG)))
        click.echo(f"{len(pages)} pages in {folder}", err=True)
    elif name in pages:
        click.echo(pages[name], nl=False)
    else:
        what = f"there is no noun {noun!r}"
        way_out = f"{meant(noun or '', NOUNS)}'sexton --help' lists them."
        ctx.exit(explain(Fault(what, way_out, status=USAGE)))
