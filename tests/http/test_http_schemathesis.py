"""Schemathesis over the live server from its own OpenAPI document, with all its checks on.

The ordinary run is bounded, and takes a part of the routes: each run another. SEXTON_FUZZ_PART names one,
and SEXTON_FUZZ_EXAMPLES asks for all (`make fuzz`).
"""

import os
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec
import trio

from sexton_http.gateway.operations import Creates
from sexton_http.routes.table import OPERATIONS
from tests.thorough import PART, THOROUGH, amount
from tests.worlds.http import HttpWorld, open_http_world

FUZZED = "SEXTON_FUZZ_EXAMPLES" in os.environ
EXAMPLES = amount(1, 2, variable="SEXTON_FUZZ_EXAMPLES")
"""Of each phase that tries random input, for each route."""
SEED = os.environ.get("SEXTON_FUZZ_SEED", "1")
TURN = int(os.environ.get("SEXTON_FUZZ_PART", secrets.randbelow(PART)))
"""Which part of the routes an ordinary run takes."""
ACCEPTED = ["2xx", "3xx", "401", "402", "403", "404", "409", "429", "5xx"]
"""What valid input may meet anywhere."""
REUSED = "422"
"""Generated Idempotency-Keys are short, and so come again with other bodies."""
MORE_STATUSES: Mapping[str, tuple[int, ...]] = {
    # Which messages there are is said by another protocol, in words.
    "serve_assistant": (400,),
    # An entry has content or is deleted, one of the two.
    "keep_memory": (400,),
    "report_run": (400,),
    # What is chosen must be there: a credential in a vault, a model in the catalogue.
    "put_tenant_provider": (400,),
    # The name in the path and that in the body are one.
    "put_named_platform_key": (400,),
    # The master keys may be the operator's own, and then are his to change.
    "rotate_vault": (400,),
    # A model is set up first, which no schema says.
    "preview_spec": (400,),
    # A duration or a time, which no schema tells apart from other texts.
    "stream_events": (400,),
    # The language of filters, of which JSON Schema knows nothing.
    "export_events": (400,),
    "stream_workspace_events": (400,),
    # A server has an address or a command, one of the two.
    "put_mcp_server": (400,),
    # No two files of a message have one name, and each comes from one place, of two that it might.
    "steer_zombie": (400, 413),
    # How large a file may be is for the operator to say.
    "begin_workspace_upload": (413,),
    # A generated text may have U+0000 anywhere within.
    "show_activity": (400,),
    # Two Markdown files with YAML in them, of which JSON Schema knows nothing.
    "install_zombie": (400,),
    "change_zombie": (400,),
    # One of two files is needed, which of them is open.
    "create_proposal": (400,),
    # Not every text of the right length is a point of the curve.
    "create_auth_session": (400,),
    "approve_auth_session": (400, 410),
    # What was there once and is over.
    "complete_auth_session": (410,),
    "verify_auth_session": (400, 410),
    "show_sign_in_link": (410,),
    "use_sign_in_link": (410,),
    # Not every text of the right length can be seen from end to end.
    "create_workspace": (400,),
    "change_workspace": (400,),
    # An end that is past, which no schema knows.
    "create_api_key": (400,),
    # The entry has to be named, as nobody wants all of them gone by a slip.
    "forget_memory": (400,),
    # A span of time of at most 400 days, which no schema knows.
    "total_charges": (400,),
    # An heir is named where keys are handed over, and else not.
    "remove_member": (400,),
    # A form is read when a chat platform has signed it, and no token stands beside it.
    "decide_by_webhook": (400, 415),
    "decide_grant_by_webhook": (400, 415),
    # Only what a sender has signed is valid, which is in no schema.
    "deliver": (400, 410),
    "deliver_to_source": (400, 410),
    "deliver_multisig": (400, 410),
}
LENIENT = ["renew_leases", "report_runs", "serve_assistant"]
"""What is wrong with one item, or one message, is told in its place, and the whole is a success."""
PAGES = "console|members|keys|grants|workspaces|"
"""Nobody is signed in there, so generated input finds the page to sign in; each page has tests of its own."""
CALLERS = {"runner": "^/v1/runners/me", "approver": "^/v1/webhooks"}
"""Who calls which paths; all others a platform admin."""
LEFT_OUT = f"^/({'' if THOROUGH else PAGES}v1/(runs|specs))"
"""The removed run pipeline answers 410 to all methods, TRACE too, where schemathesis insists on 405."""
_SUMMARY = re.compile(r"(\d+) generated, .*")


def settings(
    world: HttpWorld, zombie_id: str, spare_id: str, spare_workspace_id: str, tokens: Mapping[str, str]
) -> str:
    """The configuration: who calls, what exists, and what no schema can say."""
    lines = [
        f'headers = {{ Authorization = "Bearer {world.admin_token()}" }}',
        "[parameters]",
        # Whoever asks to wait is kept waiting.
        '"query.wait_ms" = 1',
        f'"path.workspace_id" = "{world.installation.workspace_id}"',
        f'"path.zombie_id" = "{zombie_id}"',
        f'"path.agent_id" = "{zombie_id}"',
        # Else the others would find nothing any more.
        "[[operations]]",
        'include-operation-id = "delete_zombie"',
        f'parameters = {{ "path.zombie_id" = "{spare_id}" }}',
        # Else it would be paused, and the others stopped at that.
        "[[operations]]",
        'include-operation-id = "change_workspace"',
        f'parameters = {{ "path.workspace_id" = "{spare_workspace_id}" }}',
    ]
    for caller, paths in CALLERS.items():
        lines += [
            "[[operations]]",
            f'include-path-regex = "{paths}"',
            f'headers = {{ Authorization = "Bearer {tokens[caller]}" }}',
        ]
    # Requests may have headers that nobody declared: one that a browser resumes a stream with has several.
    lines += [
        "[[operations]]",
        'include-operation-id = "stream_events"',
        "generation.allow-extra-parameters = false",
    ]
    for operation in OPERATIONS:
        more = [str(status) for status in MORE_STATUSES.get(operation.name, ())]
        # Cursors are opaque: a schema cannot say which of all texts are some.
        if any(field.name == "cursor" for field in msgspec.structs.fields(operation.query)):
            more.append("400")
        if operation.creates is not Creates.NOTHING:
            more.append(REUSED)
        if more:
            lines += [
                "[[operations]]",
                f'include-operation-id = "{operation.name}"',
                f"checks.positive_data_acceptance.expected-statuses = {[*ACCEPTED, *more]}",
            ]
    for name in LENIENT:
        lines += [
            "[[operations]]",
            f'include-operation-id = "{name}"',
            'checks.negative_data_rejection.expected-statuses = ["200", "202", "400", "404", "413", "415"]',
        ]
    if not THOROUGH:
        # Each method of each path is tried where roles are.
        lines += ["[phases.coverage]", 'unexpected-methods = ["TRACE"]']
    return "\n".join(lines) + "\n"


def test_exceptions_are_made_for_routes_that_exist() -> None:
    assert set(MORE_STATUSES) <= {operation.name for operation in OPERATIONS}


def chosen() -> list[str]:
    """The options that name the routes of this run; none stands for all."""
    if THOROUGH or FUZZED:
        return []
    return [f"--include-operation-id={operation.name}" for operation in OPERATIONS[TURN::PART]]


async def cordoned(world: HttpWorld) -> str:
    """A runner that gets nothing new, so that no poll of it waits."""
    token = await world.enrol()
    me = (await world.get("/v1/runners/me", token)).json()["id"]
    path = f"/v1/fleet/runners/{me}"
    answer = await world.call("PATCH", path, world.admin_token(), json={"admin_state": "cordoned"})
    assert answer.status_code == 200
    return token


async def test_no_input_that_can_be_generated_finds_a_fault(tmp_path: Path) -> None:
    async with open_http_world(provokes=False, address_rate=None, stream_heartbeat_s=0.2) as world:
        await world.keep_secret()
        zombie, spare = await world.install(), await world.install("spare")
        workspace = (await world.post("/v1/workspaces", {"name": "spare"})).json()
        tokens = {"runner": await cordoned(world), "approver": zombie["approval_token"]}
        config = tmp_path / "schemathesis.toml"
        config.write_text(
            settings(world, zombie["zombie_id"], spare["zombie_id"], workspace["workspace_id"], tokens),
            encoding="utf-8",
        )
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            f"--config-file={config}",
            "run",
            f"{world.base_url}/openapi.json",
            "--checks=all",
            f"--phases=coverage{',fuzzing' if THOROUGH or FUZZED else ''}",
            f"--max-examples={EXAMPLES}",
            f"--seed={SEED}",
            "--generation-database=none",
            "--suppress-health-check=all",
            "--request-timeout=10",
            "--no-color",
            f"--exclude-path-regex={LEFT_OUT}",
            *chosen(),
        ]
        outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = await trio.run_process(
            command, check=False, capture_stdout=True, capture_stderr=True, cwd=tmp_path, env=outside
        )
        report = done.stdout.decode()
        assert done.returncode == 0, f"{report}{done.stderr.decode()}\nagain with SEXTON_FUZZ_PART={TURN}"

        tried = _SUMMARY.search(report)
        assert tried is not None, report
        assert int(tried[1]) > 0

        print(tried[0])  # noqa: T201 - shown by `make fuzz`
