"""``sexton up``, ``serve``, ``runner`` and ``demo``: what runs on this machine."""

import sys
from pathlib import Path

import click

from sexton_actors.terms import LOOK_EVERY_S
from sexton_cli.addresses import DEFAULT_HOST, DEFAULT_PORT
from sexton_cli.commands.ceiling_options import CEILING_OPTIONS, take_ceilings
from sexton_cli.commands.command import command
from sexton_cli.commands.files_store_options import FILES_STORE_OPTIONS, take_stores
from sexton_cli.commands.shown_options import shown_options
from sexton_cli.commands.sign_in_options import SIGN_IN_OPTIONS, take_sign_ins
from sexton_cli.commands.trace_options import TRACE_OPTIONS, take_traces
from sexton_cli.commands.worker_options import WORKER_OPTIONS
from sexton_cli.data_folder import default_data
from sexton_cli.demo.main import main as demo_main
from sexton_cli.settings import DATABASE_VARIABLE, DEFAULT_DATABASE_WAIT_S, NodeSettings
from sexton_cli.up import UpSettings, run_serve, run_up
from sexton_http.wire.forwarded import read_networks
from sexton_http.wire.tls import Tls
from sexton_runner.__main__ import RUN_DEFAULT_VARIABLE, RUN_MOST_VARIABLE, command as runner_command
from sexton_runner.errors import BadSettings
from sexton_runner.logs import FORMAT_VARIABLE, LEVEL_VARIABLE, LogFormat, LogLevel, LogSettings
from sexton_runner.run_bounds import read_bounds
from sexton_runner.settings import DEFAULT_DRAIN_S, SandboxTier

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


def _node_options(command: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(
        (
            click.option("--data", type=FOLDER, envvar="SEXTON_DATA", help="Folder for all state."),
            click.option(
                "--host",
                default=DEFAULT_HOST,
                show_default=True,
                envvar="SEXTON_HOST",
                help="Address to listen on.",
            ),
            click.option(
                "--port",
                type=click.IntRange(0, 65535),
                default=DEFAULT_PORT,
                show_default=True,
                envvar="SEXTON_PORT",
                help="Port to listen on; 0 takes any that is free.",
            ),
            click.option(
                "--database-url",
                envvar=DATABASE_VARIABLE,
                help="A PostgreSQL of your own in place of the embedded one.",
            ),
            click.option(
                "--database-wait",
                "database_wait_s",
                type=click.FloatRange(0),
                default=DEFAULT_DATABASE_WAIT_S,
                show_default=True,
                help="Seconds to wait for that PostgreSQL to answer.",
            ),
            click.option(
                "--look-every",
                "look_every_s",
                type=click.FloatRange(0.1, 3600),
                default=LOOK_EVERY_S,
                show_default=True,
                help="Seconds between checks for what other servers of the database did without notice.",
            ),
            click.option(
                "--migrate/--no-migrate",
                default=True,
                show_default=True,
                envvar="SEXTON_MIGRATE",
                help="Bring the schema up to date, or start only where it is.",
            ),
            click.option(
                "--wal-archive",
                type=FOLDER,
                envvar="SEXTON_WAL_ARCHIVE",
                help="Folder for the embedded database's write-ahead log, to restore any moment.",
            ),
            click.option(
                "--public-url",
                envvar="SEXTON_PUBLIC_URL",
                help="The address that links to this server start with.",
            ),
            click.option(
                "--identity",
                type=FILE,
                envvar="SEXTON_IDENTITY",
                help="Identity providers and issuers, as TOML. [default: identity.toml in the data folder]",
            ),
            click.option(
                "--catalogue",
                type=FILE,
                envvar="SEXTON_CATALOGUE",
                help="Models and prices, as JSON. [default: catalogue.json in the data folder, else our own]",
            ),
            click.option(
                "--billing",
                type=FILE,
                envvar="SEXTON_BILLING",
                help="Plans and free trial, as TOML. [default: billing.toml in the data folder]",
            ),
            click.option(
                "--tls-cert", type=FILE, envvar="SEXTON_TLS_CERT", help="PEM file; needs --tls-key."
            ),
            click.option(
                "--trusted-proxy",
                "trusted_proxies",
                multiple=True,
                envvar="SEXTON_TRUSTED_PROXIES",
                help="Address or network whose Forwarded or X-Forwarded-For is believed; may be repeated.",
            ),
            click.option("--tls-key", type=FILE, envvar="SEXTON_TLS_KEY", help="PEM file."),
            click.option(
                "--metrics-token",
                envvar="SEXTON_METRICS_TOKEN",
                help="What a reader of /metrics sends as bearer, where more than this machine reaches it.",
            ),
            click.option(
                "--log-format",
                type=click.Choice([one.value for one in LogFormat]),
                default=LogFormat.AUTO.value,
                show_default=True,
                envvar=FORMAT_VARIABLE,
                help="How to log, on standard error; 'auto' is 'console' on a terminal, else 'json'.",
            ),
            click.option(
                "--log-level",
                type=click.Choice([one.value for one in LogLevel]),
                default=LogLevel.INFO.value,
                show_default=True,
                envvar=LEVEL_VARIABLE,
                help="The lowest level to log.",
            ),
            click.option(
                "--access-log",
                is_flag=True,
                envvar="SEXTON_ACCESS_LOG",
                help="Log each request, and not only those that are refused or fail.",
            ),
            click.option(
                "--erasures-file",
                type=FILE,
                envvar="SEXTON_ERASURES_FILE",
                help="List of erasures, kept outside the database; a start does again those that it lacks.",
            ),
            *CEILING_OPTIONS,
            *SIGN_IN_OPTIONS,
            *FILES_STORE_OPTIONS,
            *TRACE_OPTIONS,
            *WORKER_OPTIONS,
            click.option(
                "--ready-file", type=FILE, help="File that receives one JSON object when the server is ready."
            ),
        )
    ):
        command = option(command)
    return command


def _node_settings(given: dict[str, object]) -> NodeSettings:
    certificate, key = given.pop("tls_cert"), given.pop("tls_key")
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    tls = Tls(certificate, key) if isinstance(certificate, Path) and isinstance(key, Path) else None
    words = given.pop("trusted_proxies")
    try:
        proxies = read_networks([str(word) for word in words] if isinstance(words, tuple) else [])
    except ValueError as fault:
        raise click.UsageError(f"--trusted-proxy: {fault}") from fault
    ceilings = {**take_ceilings(given), "sign_ins": take_sign_ins(given)}
    stores = take_stores(given)
    traces = take_traces(given)
    log = LogSettings(LogFormat(str(given.pop("log_format"))), LogLevel(str(given.pop("log_level"))))
    data = given.pop("data") or default_data()
    return NodeSettings(
        options=shown_options(click.get_current_context()),
        data=data,  # type: ignore[arg-type]  # click has checked each by its option
        tls=tls,
        log=log,
        trusted_proxies=proxies,
        **stores,  # type: ignore[arg-type]  # they are read already
        **traces,  # type: ignore[arg-type]  # they are read already
        **ceilings,  # type: ignore[arg-type]  # these, too
        **given,  # type: ignore[arg-type]  # click has checked each by its option
    )


def _bounds(_ctx: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Refuse what every runner would refuse, before anything is started."""
    try:
        read_bounds(text or "", str(parameter.name))
    except BadSettings as fault:
        raise click.BadParameter(str(fault)) from fault
    return text


@command()
@_node_options
@click.option("--runners", type=click.IntRange(0, 64), default=1, show_default=True, help="Local runners.")
@click.option("--slots", type=click.IntRange(1, 256), default=4, show_default=True, help="Of each runner.")
@click.option("--label", multiple=True, help="Of each runner; may be repeated.")
@click.option(
    "--sandbox",
    type=click.Choice(["bubblewrap", "landlock", "podman", "none"]),
    default="bubblewrap",
    show_default=True,
    help="'none' only for development.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Runners refuse to start where the sandbox is weaker than it could be.",
)
@click.option(
    "--drain",
    "drain_s",
    type=click.FloatRange(0),
    default=DEFAULT_DRAIN_S,
    show_default=True,
    help="Seconds that runs may go on after SIGTERM or Ctrl-C.",
)
@click.option(
    "--run-default",
    metavar="BOUNDS",
    envvar=RUN_DEFAULT_VARIABLE,
    callback=_bounds,
    help="What a run has that asks for nothing, such as cpu=1,memory=1GiB,pids=128,disk=512MiB,wall=1h.",
)
@click.option(
    "--run-most",
    metavar="BOUNDS",
    envvar=RUN_MOST_VARIABLE,
    callback=_bounds,
    help="The most that an agent's resources may ask for, in the same form.",
)
def up(
    *,
    runners: int,
    slots: int,
    label: tuple[str, ...],
    sandbox: str,
    strict: bool,
    drain_s: float,
    ready_file: Path | None,
    **given: object,
) -> None:
    """Start everything here: database, server and local runners.

    Runners are started with the environment of this command: 'sexton runner --help' lists what they read of
    it, such as SEXTON_EGRESS_PRIVATE_HOSTS.
    """
    bounds = {name: given.pop(name) for name in ("run_default", "run_most")}
    node = _node_settings(given)
    settings = UpSettings(
        node=node,
        ready_file=ready_file,
        runners=runners,
        sandbox=SandboxTier(sandbox),
        drain_s=drain_s,
        runner_options=(
            "--slots",
            str(slots),
            "--sandbox",
            sandbox,
            "--drain-s",
            str(drain_s),
            *(("--strict",) if strict else ()),
            *(w for name in label for w in ("--label", name)),
            *(f"--{name.replace('_', '-')}={text}" for name, text in bounds.items() if text),
            *node.log.options,
        ),
    )
    sys.exit(run_up(settings))


@command()
@_node_options
def serve(*, ready_file: Path | None, **given: object) -> None:
    """Start the server alone; runners are started elsewhere."""
    sys.exit(run_serve(_node_settings(given), ready_file))


@command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def runner(words: tuple[str, ...]) -> None:
    """Start a runner on this machine; 'sexton runner --help' tells its options."""
    sys.exit(runner_command(list(words)))


@command()
def demo() -> None:
    """See the whole path work with real parts, from an empty folder."""
    sys.exit(demo_main())
