"""Makes the generated part of the TypeScript client from the interface's own tables, or compares the two.

The types come of ``openapi-typescript``, a tool of JavaScript that `make node` installs; where it is not
there, only what this program writes itself is looked at.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from scripts.documented_programs import program

from sexton_http.describe.components import references
from sexton_http.describe.openapi import PARAMETERS, make_document
from sexton_http.error_codes.code import Shown
from sexton_http.gateway.operations import Auth, Creates, Operation
from sexton_http.identity.context import VERSION
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS

ROOT: Final = Path(__file__).resolve().parent.parent
CLIENT: Final = ROOT / "clients" / "typescript"
PAGES: Final = (
    CLIENT / "README.md",
    ROOT / "docs" / "how-to" / "use-the-http-interface.md",
    ROOT / "docs" / "how-to" / "write-a-client-program.md",
)
NODE_TYPES: Final = """
declare const process: { env: Record<string, string | undefined> };
declare module "node:crypto" {
  export function createHmac(name: string, key: string): Hmac;
  interface Hmac { update(text: string): Hmac; digest(form: "hex"): string }
}
"""
"""As much of Node's own types as the programs use."""
TOOLS: Final = ROOT / "requirements" / "node" / "node_modules" / ".bin"
NOTE: Final = "// Made by `make clients ARGS=--write`: change the routes, not this file."
HEADERS: Final = frozenset(name for name, one in PARAMETERS.items() if one["in"] == "header")
MISSING: Final = "its types were not looked at: `make node` installs what they need, where npm is"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files; without it they are compared")
    write: bool = parser.parse_args().write
    with tempfile.TemporaryDirectory(prefix="sexton-client-") as name:
        made = make_all(Path(name))
    if write:
        for file, text in made.items():
            (CLIENT / file).write_text(text)
    stale = differing(made)
    if stale:
        sys.exit(f"clients/typescript: {', '.join(stale)} differ: run `make clients ARGS=--write`.")
    compiler = tool("tsc")
    if compiler is None or "src/openapi.ts" not in made:
        print(f"clients/typescript: up to date as far as could be seen; {MISSING}")
        return
    with tempfile.TemporaryDirectory(prefix="sexton-types-") as name:
        project = write_project(Path(name))
        done = subprocess.run([compiler, "--project", str(project)], check=False)
    if done.returncode:
        sys.exit("clients/typescript: its types, or those of a program in the documents, are wrong.")
    print("clients/typescript: up to date, and its types are right.")


def write_project(folder: Path) -> Path:
    """Put the library and the programs that the documents show together, for the compiler to look at."""
    for page in PAGES:
        (folder / f"{page.stem.lower()}.mts").write_text(program(page.read_text(), "ts"))
    (folder / "node.d.ts").write_text(NODE_TYPES)
    (folder / "package.json").write_text('{"type": "module"}')
    options = {
        "noEmit": True,
        "declaration": False,
        "rootDir": "/",
        "paths": {"@sexton/client": [str(CLIENT / "src" / "index.ts")]},
    }
    project = folder / "tsconfig.json"
    settings = {"extends": str(CLIENT / "tsconfig.json"), "compilerOptions": options}
    project.write_text(json.dumps({**settings, "include": [str(folder / "*"), str(CLIENT / "src")]}))
    return project


def make_all(folder: Path) -> dict[str, str]:
    """Each generated file, by its path in the client; without the types where their tool is missing."""
    made = tables()
    generator = tool("openapi-typescript")
    if generator is not None:
        made["src/openapi.ts"] = types(generator, folder)
    return made


def tables() -> dict[str, str]:
    """The files that need no tool of JavaScript."""
    return {"src/operations.ts": operations(), "src/codes.ts": codes(), "src/version.ts": version()}


def differing(made: Mapping[str, str]) -> list[str]:
    """Those that are not in the repository as they were made now."""
    return [file for file, text in made.items() if not has_text(CLIENT / file, text)]


def has_text(path: Path, text: str) -> bool:
    return path.exists() and path.read_text() == text


def tool(name: str) -> str | None:
    """A tool of JavaScript; never fetched from here."""
    program = TOOLS / name
    return str(program) if shutil.which("node") and program.exists() else None


def called() -> Iterator[Operation]:
    """What programs call: neither pages, nor what is gone, nor what senders of webhooks sign."""
    yield from (
        row
        for row in OPERATIONS
        if not row.deprecated
        and row.auth not in {Auth.BROWSER, Auth.WEBHOOK}
        and "text/html" not in row.media
        and row.form is None
        and row.status < 300  # noqa: PLR2004 - redirections are for browsers
    )


def operations() -> str:
    """Method and path of each operation, and whether it takes an Idempotency-Key."""
    rows = "".join(
        f'  {row.name}: {{ method: "{row.method}", path: "{row.path}"'
        f"{', keyed: true' if row.creates is not Creates.NOTHING else ''} }},\n"
        for row in sorted(called(), key=lambda row: row.name)
    )
    return (
        "/** Where each operation of the interface is. */\n"
        f"{NOTE}\n\nexport const OPERATIONS = {{\n{rows}}} as const;\n"
    )


def codes() -> str:
    """What each code that an answer may have means."""
    rows = "".join(
        f'  "{row.code}": {json.dumps(row.cause, ensure_ascii=False)},\n'
        for row in CODES.values()
        if Shown.ANSWER in row.shown
    )
    return (
        "/** What each code means with which a server refuses. */\n"
        f"{NOTE}\n\nexport const CODES = {{\n{rows}}} as const;\n\n"
        "export type ErrorCode = keyof typeof CODES;\n"
    )


def version() -> str:
    return (
        "/** The version of the server that this library was made for. */\n"
        f'{NOTE}\n\nexport const VERSION = "{VERSION}";\n'
    )


def types(generator: str, folder: Path) -> str:
    document, written = folder / "openapi.json", folder / "openapi.ts"
    document.write_text(json.dumps(reduced(make_document(OPERATIONS, "http://127.0.0.1"))))
    options = ["--alphabetize", "--default-non-nullable=false", "--empty-objects-unknown"]
    subprocess.run(
        [generator, str(document), f"--output={written}", *options], check=True, capture_output=True
    )
    return f"{NOTE}\n\n{written.read_text()}"


def reduced(document: dict[str, Any]) -> dict[str, Any]:
    """What programs call, without refusals, headers and examples: a third of the length."""
    names = {row.name for row in called()}
    paths: dict[str, dict[str, Any]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if operation["operationId"] in names:
                paths.setdefault(path, {})[method] = _reduced(operation)
    parameters = document["components"]["parameters"]
    schemas = dict(document["components"]["schemas"])
    components = {"parameters": parameters, "schemas": schemas}
    used = {one.rpartition("/")[2] for one in references([paths, schemas["Problem"]])}
    ahead = list(used)
    while ahead:
        for one in references(schemas.get(ahead.pop(), {})):
            name = one.rpartition("/")[2]
            if name not in used:
                used.add(name)
                ahead.append(name)
    kept = {
        kind: {name: part for name, part in parts.items() if name in used | {"Problem"}}
        for kind, parts in components.items()
    }
    return {**document, "paths": paths, "components": kept}


def _reduced(operation: dict[str, Any]) -> dict[str, Any]:
    """Headers are the library's business, and examples that of the reference."""
    body = operation.get("requestBody")
    return {
        "operationId": operation["operationId"],
        "summary": operation["summary"],
        **({} if body is None else {"requestBody": _plain(body)}),
        "parameters": [
            one for one in operation["parameters"] if one.get("$ref", "").rpartition("/")[2] not in HEADERS
        ],
        "responses": {
            status: _plain(response)
            for status, response in operation["responses"].items()
            if status.startswith("2")
        },
    }


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in part.items() if key not in {"headers", "content"}}
    if "content" in part:
        plain["content"] = {media: {"schema": one["schema"]} for media, one in part["content"].items()}
    return plain


if __name__ == "__main__":
    main()
