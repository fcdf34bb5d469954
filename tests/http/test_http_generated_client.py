"""Clients that others generate from the live document: without a warning, whole, and they work."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from sexton_http.routes.table import OPERATIONS
from tests.worlds.http import HttpWorld

ROOT = Path(__file__).resolve().parents[2]
NODE = ROOT / "requirements" / "node"
"""Where `make node` installs the tools of JavaScript, by their lock."""
QUIET = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
"""They ask nobody for anything while they work."""
CALLS = """
import json, sys
from sexton_client import AuthenticatedClient, Client
from sexton_client.api.api_keys import create_api_key, list_api_keys
from sexton_client.api.service import healthz
from sexton_client.api.workspaces import create_workspace
from sexton_client.models import KeyMade, NewKey, NewWorkspace, Problem, WorkspaceMade

base_url, token = sys.argv[1:]
with Client(base_url=base_url) as client:
    health = healthz.sync(client=client)
    refused = list_api_keys.sync(client=AuthenticatedClient(base_url=base_url, token="zmb_t_" + "0" * 64))
with AuthenticatedClient(base_url=base_url, token=token) as client:
    made = create_api_key.sync(client=client, body=NewKey(key_name="generated"))
    workspace = create_workspace.sync(client=client, body=NewWorkspace(name="generated"))
    keys = list_api_keys.sync(client=client)
assert isinstance(made, KeyMade) and isinstance(workspace, WorkspaceMade) and isinstance(refused, Problem)
names = sorted(key.key_name for key in keys.items)
print(json.dumps([health.status, refused.error_code, workspace.name, names]))
"""


async def run(*command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return await trio.run_process(
        command, check=False, capture_stdout=True, capture_stderr=True, cwd=cwd, env={**os.environ, **QUIET}
    )


def tool(name: str) -> str:
    """A tool of JavaScript; never fetched from here."""
    program = NODE / "node_modules" / ".bin" / name
    if shutil.which("node") is None or not program.exists():
        pytest.skip(f"{name} is not installed; `make node` installs it where npm is")
    return str(program)


async def save(world: HttpWorld, folder: Path) -> str:
    path = folder / "openapi.json"
    path.write_bytes((await world.get("/openapi.json", None)).content)
    return str(path)


async def test_a_python_client_is_generated_whole_and_works(world: HttpWorld, tmp_path: Path) -> None:
    package, config = tmp_path / "sexton_client", tmp_path / "config.yml"
    # By itself the generator knows of no lines of JSON.
    config.write_text("post_hooks: []\ncontent_type_overrides: {application/x-ndjson: text/plain}\n")
    generator = str(Path(sys.executable).with_name("openapi-python-client"))
    made = await run(
        generator,
        "generate",
        f"--url={world.base_url}/openapi.json",
        f"--output-path={package}",
        "--meta=none",
        f"--config={config}",
        "--fail-on-warning",
    )
    told = (made.stdout + made.stderr).decode()
    assert (made.returncode, "arning" in told) == (0, False), told

    endpoints = {path.stem for path in package.glob("api/*/*.py")} - {"__init__"}
    assert endpoints == {row.name for row in OPERATIONS}

    called = await run(sys.executable, "-c", CALLS, world.base_url, world.api_key, cwd=tmp_path)
    assert called.returncode == 0, called.stderr.decode()
    assert json.loads(called.stdout) == ["ok", "UZ-AUTH-002", "generated", ["admin", "generated"]]


async def test_a_linter_of_openapi_finds_neither_faults_nor_warnings(
    world: HttpWorld, tmp_path: Path
) -> None:
    redocly, document = tool("redocly"), await save(world, tmp_path)
    done = await run(redocly, "lint", f"--config={NODE / 'redocly.yaml'}", "--format=json", document)
    found = json.loads(done.stdout)

    assert (done.returncode, found["totals"]) == (0, {"errors": 0, "warnings": 0, "ignored": 0}), found


async def test_types_of_typescript_are_generated_and_compile(world: HttpWorld, tmp_path: Path) -> None:
    generator, compiler = tool("openapi-typescript"), tool("tsc")
    types = tmp_path / "sexton.ts"
    made = await run(generator, await save(world, tmp_path), f"--output={types}")
    told = (made.stdout + made.stderr).decode()
    assert (made.returncode, "arning" in told or "✘" in told) == (0, False), told
    assert types.read_text().count("operations[") == len(OPERATIONS)

    done = await run(compiler, "--noEmit", "--strict", str(types))
    assert done.returncode == 0, done.stdout.decode()
