"""The command line of a runner: ``python -m sexton_runner``."""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from sexton_runner import doctor
from sexton_runner.egress_settings import read_egress_settings, variables as egress_variables
from sexton_runner.errors import BadSettings
from sexton_runner.images.store import default_folder
from sexton_runner.logs import LogFormat, LogLevel, LogSettings, read_log_settings
from sexton_runner.main import EXIT_CONFIG, main
from sexton_runner.providers.addresses import read_addresses
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.settings import (
    DEFAULT_DRAIN_S,
    DEFAULT_RUN_WALL_S,
    DEFAULT_SLOTS,
    RunnerSettings,
    SandboxTier,
)
from sexton_runner.tool_settings import LOOPBACK_VARIABLE, MCP_VARIABLE, read_tool_settings

TOKEN_VARIABLE = "SEXTON_RUNNER_TOKEN"  # noqa: S105 - the name of a variable
ENROLMENT_VARIABLE = "SEXTON_ENROLMENT_TOKEN"
RUN_DEFAULT_VARIABLE = "SEXTON_RUN_DEFAULT"
RUN_MOST_VARIABLE = "SEXTON_RUN_MOST"
VARIABLES = {
    TOKEN_VARIABLE: "a runner token, which wins over the one that is kept",
    ENROLMENT_VARIABLE: "an enrolment token, good once",
    RUN_DEFAULT_VARIABLE: "as --run-default",
    RUN_MOST_VARIABLE: "as --run-most",
    "SEXTON_<PROVIDER>_BASE_URL": "where a provider of models is reached",
    MCP_VARIABLE: "file with MCP servers",
    LOOPBACK_VARIABLE: "1 lets http_request reach this host",
    **egress_variables(),
}
"""What a runner reads of its environment beside what its options name."""


def make_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Give what reads the words; ``environment`` has the defaults. Raises ``BadSettings``."""
    parser = argparse.ArgumentParser(
        prog="python -m sexton_runner",
        description="Run a Sexton runner.",
        epilog="\n".join(
            ["environment:", *(f"  {name}\n        {words}" for name, words in VARIABLES.items())]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--base-url", required=True, help="address of the control plane")
    parser.add_argument(
        "--state-dir", required=True, type=Path, help="folder for the runner's token and its runs"
    )
    parser.add_argument("--host-id", help="name in the fleet (default: this host's name)")
    parser.add_argument(
        "--label", action="append", default=[], help="a tag this runner serves; may be repeated"
    )
    parser.add_argument(
        "--slots", type=int, default=DEFAULT_SLOTS, help="how many events at a time, 1 to 256"
    )
    parser.add_argument(
        "--sandbox",
        type=SandboxTier,
        choices=list(SandboxTier),
        default=SandboxTier.BUBBLEWRAP,
        help="what shuts a run in; 'none' only for development",
    )
    parser.add_argument(
        "--drain-s", type=float, default=DEFAULT_DRAIN_S, help="seconds that runs may go on after SIGTERM"
    )
    parser.add_argument(
        "--run-wall-s", type=float, default=DEFAULT_RUN_WALL_S, help="seconds after which a run is ended"
    )
    parser.add_argument(
        "--run-default",
        default=environment.get(RUN_DEFAULT_VARIABLE, ""),
        metavar="BOUNDS",
        help="what a run has that asks for nothing, such as cpu=1,memory=1GiB,pids=128,disk=512MiB,wall=1h",
    )
    parser.add_argument(
        "--run-most",
        default=environment.get(RUN_MOST_VARIABLE, ""),
        metavar="BOUNDS",
        help="the most that an agent's resources may ask for, in the same form",
    )
    parser.add_argument(
        "--images",
        type=Path,
        default=default_folder(environment),
        help="folder of the images that runs may have (default: SEXTON_IMAGES, ~/.local/share/sexton/images)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="take no work where the sandbox is weaker than it could be"
    )
    parser.add_argument(
        "--server-cert",
        type=Path,
        help="PEM file with the control plane's own certificate, to trust no other",
    )
    logs = _log_settings(environment)
    parser.add_argument(
        "--log-format", type=LogFormat, choices=list(LogFormat), default=logs.format, help="how to log"
    )
    parser.add_argument(
        "--log-level", type=LogLevel, choices=list(LogLevel), default=logs.level, help="what to log"
    )
    return parser


def read_arguments(words: list[str]) -> RunnerSettings:
    """Turn words into settings.

    Tokens come from the environment only: words can be read by every process of the host.
    """
    given = make_parser(os.environ).parse_args(words)
    named = {} if given.host_id is None else {"host_id": given.host_id}
    return RunnerSettings(
        base_url=given.base_url,
        state_dir=given.state_dir,
        runner_token=os.environ.pop(TOKEN_VARIABLE, None),
        enrolment_token=os.environ.pop(ENROLMENT_VARIABLE, None),
        labels=tuple(given.label),
        slots=given.slots,
        sandbox_tier=given.sandbox,
        drain_s=given.drain_s,
        run_wall_s=given.run_wall_s,
        run_default=given.run_default,
        run_most=given.run_most,
        images=given.images,
        strict=given.strict,
        server_cert=given.server_cert,
        log=LogSettings(given.log_format, given.log_level),
        models=ModelSettings(addresses=read_addresses(os.environ)),
        tools=read_tool_settings(os.environ),
        egress=read_egress_settings(os.environ),
        **named,
    )


def _log_settings(environment: Mapping[str, str]) -> LogSettings:
    try:
        return read_log_settings(environment)
    except ValueError as fault:
        raise BadSettings(f"SEXTON_LOG_FORMAT or SEXTON_LOG_LEVEL: {fault}") from fault


def command(words: list[str]) -> int:
    """Run a runner as the words say, or examine this host, and give the exit status."""
    if words[:1] == ["doctor"]:
        return doctor.command(words[1:])
    try:
        settings = read_arguments(words)
    except BadSettings as fault:
        sys.stderr.write(f"sexton runner: UZ-STARTUP-002: {fault}\n")
        return EXIT_CONFIG
    return main(settings)


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
