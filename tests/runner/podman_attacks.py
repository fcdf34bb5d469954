"""The attacks on every sandbox, in containers of the tier ``podman``.

``python -m tests.runner.podman_attacks FOLDER`` makes the self-test of a runner's start, and carries the
attacks out one after another in one container, with a network and a credential. Then it leaves a process
running there, prints what came of all as one line of JSON, and waits to be killed. With ``each`` every attack
gets a container of its own, those that use up memory and processes too, and the program ends. Where podman
cannot run a container it says why, and ends with 69.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import trio

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.errors import SandboxUnavailable
from sexton_runner.redact import Redactor
from sexton_runner.run_network import open_network
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.podman import find_client
from sexton_runner.sandbox.privilege_drop import is_root
from sexton_runner.sandbox.probe import check, make_sandbox
from sexton_runner.sandbox.workspace import Workspace, open_workspace
from sexton_runner.sandbox.workspace_command import run_command
from sexton_runner.settings import SandboxTier
from sexton_runner.wire import NetworkPolicy, Policy
from tests.runner.attacks import ATTACKS, CANARY, LIMITS, Attack, Target, attempt, carry_out
from tests.runner.network_attacks import NETWORK_ATTACKS

UNAVAILABLE = 69
ON_ITS_PARENT = "trace the keeper and the first process"
SOON_S, PATIENCE_S = 10.0, 60.0
# Each in a process of its own, but one interpreter: to start one takes longer than most attacks do.
ALL_IN_ONE = """
import json, traceback
found = {}
for name, code in ATTACKS.items():
    heard, said = os.pipe()
    if (pid := os.fork()) == 0:
        os.dup2(said, 1)
        try:
            exec(code)
        except BaseException:
            print("BROKEN", traceback.format_exc())
        sys.stdout.flush()
        os._exit(0)
    os.close(said)
    with os.fdopen(heard) as file:
        text = file.read()
    found[name] = text if os.waitpid(pid, 0)[1] or "BROKEN" in text else "held"
print(json.dumps(found))
"""
HIDDEN_TWICE = Attack("""
found = [line.split()[4] for line in open("/proc/self/mountinfo")]
doubled = [place for place in found if place.startswith("/run/sexton/")]
if doubled: print("BROKEN", doubled)
for path in ("kcore", "keys", "sysrq-trigger", "interrupts"):
    for folder, _, files in os.walk("/run/sexton"):
        if path in files: print("BROKEN", folder, path)
""")
"""The root of a container lies in a folder that is shown in it."""
STAYING = "until test -e go; do sleep 0.02; done; echo heard; echo $SEXTON_SECRET_HUB_TOKEN >lent"
MARKER = "31536000.77"
# What podman leaves to a program, and is bounded otherwise: it may offer itself to be killed first.
OWN_SCORE = ' "/proc/self/oom_score_adj",\n             "/proc/1/oom_score_adj",'
# An ordinary user's runner has one number for a container, which is 0 there and owns the folder of devices.
OWN_NUMBER = (
    'refused("uid 0", lambda: os.setuid(0))\nrefused("gid 0", lambda: os.setgid(0))\n',
    '"/dev/x", ',
)


HEAVY = ("bomb", "memory", "fill", "inodes", "outlive")
"""In names of attacks that a container does not always survive, or that end with their command."""


def light() -> tuple[str, ...]:
    """Name the attacks that follow one another in one container."""
    given = podman_attacks().items()
    return tuple(
        name for name, one in given if one.expect == ("held",) and not any(word in name for word in HEAVY)
    )


def podman_attacks() -> Mapping[str, Attack]:
    """Give the attacks on any sandbox, without what podman grants."""
    given = {**ATTACKS, **NETWORK_ATTACKS, "see the root a second time": HIDDEN_TWICE}
    granted = [OWN_SCORE] if is_root() else [OWN_SCORE, *OWN_NUMBER]
    for text in granted:
        (name,) = (name for name, attack in given.items() if text in attack.code)
        given[name] = replace(given[name], code=given[name].code.replace(text, ""))
    return given


async def hold(folder: Path, sandbox: Sandbox) -> None:
    """Attack in one container, leave a process there, and never end."""
    policy = Policy(
        network_policy=NetworkPolicy(allow=("allowed.example",)), secrets_map={"hub": {"token": CANARY}}
    )
    target = Target(folder)
    head = target.head()
    python = sandbox.interpreter("python", "-c")
    async with (
        open_network(policy, EgressSettings(), Redactor({}), lambda _: None) as network,
        open_workspace(
            sandbox,
            run_dir=folder / "run",
            folder=folder / "workspace",
            serial="attacks",
            network=network,
            lasting=True,
        ) as workspace,
    ):
        attacks = {name: podman_attacks()[name].code for name in light() if name != ON_ITS_PARENT}
        program = f"{head}ATTACKS = {attacks!r}\n{ALL_IN_ONE}"
        done = await run_command(workspace, [*python, program], redactor=Redactor({}), timeout_s=PATIENCE_S)
        came = await attempt(workspace, python, head, ATTACKS[ON_ITS_PARENT])
        found = {**orjson.loads(done.out.text()), ON_ITS_PARENT: came, "traces": target.changed() or "held"}
        found["background"] = await _left_running(workspace)
        sys.stdout.write(orjson.dumps(found).decode() + "\n")
        sys.stdout.flush()
        await trio.sleep_forever()


async def _left_running(workspace: Workspace) -> str:
    background = f"({STAYING}; exec sleep {MARKER}) &"
    began = await run_command(
        workspace, ["/bin/sh", "-c", background], redactor=Redactor({}), timeout_s=SOON_S
    )
    look = f"touch go; until test -s lent; do sleep 0.02; done; cat {began.left[0].log} lent"
    seen = await run_command(workspace, ["/bin/sh", "-c", look], redactor=Redactor({}), timeout_s=SOON_S)
    return seen.out.text()


async def main(folder: Path, words: list[str]) -> None:
    """Do what the words say."""
    sandbox = make_sandbox(SandboxTier.PODMAN, LIMITS, folder)
    await check(sandbox)
    if words[:1] == ["each"]:
        attacks = {name: attack for name, attack in podman_attacks().items() if name in ATTACKS}
        found = await carry_out(folder, words[1:], attacks, sandbox)
        sys.stdout.write(orjson.dumps(found).decode())
    else:
        await hold(folder, sandbox)


if __name__ == "__main__":
    os.environ["SEXTON_RUNNER_TOKEN"] = CANARY
    try:
        find_client()
    except SandboxUnavailable as fault:
        sys.stderr.write(str(fault))
        sys.exit(UNAVAILABLE)
    trio.run(main, Path(sys.argv[1]), sys.argv[2:])
