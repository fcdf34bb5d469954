"""Makes the generated half of the Python client from the OpenAPI document: ``python -m clients.maker``.

openapi-python-client reads the document: it resolves references, merges schemas and finds names for classes
and fields. What is made of that is small enough to be read: one module of shapes, one of operations, two of
methods. It ends with 1 where what is there differs; with ``--write`` it is made again.
"""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from openapi_python_client.config import Config, ConfigFile, MetaType
from openapi_python_client.parser import GeneratorData
from openapi_python_client.parser.errors import GeneratorError

from clients.maker.document import Maker
from clients.maker.text import constant
from sexton_http.describe.openapi import make_document
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS

ROOT: Final = Path(__file__).resolve().parents[2]
CLIENTS: Final = ROOT / "clients"
MADE: Final = CLIENTS / "python" / "sexton_client" / "generated"
TEMPLATES: Final = CLIENTS / "python" / "templates"


def read_document(document: dict[str, Any]) -> GeneratorData:
    """Let the generator read it. Ends the program where it has a warning."""
    options = ConfigFile(content_type_overrides={"application/x-ndjson": "text/plain"}, post_hooks=[])
    config = Config.from_sources(
        options, MetaType.NONE, Path("openapi.json"), "utf-8", overwrite=False, output_path=None
    )
    data = GeneratorData.from_dict(document, config=config)
    if isinstance(data, GeneratorError):
        sys.exit(f"{data.header}: {data.detail}")
    faults = [*data.errors, *(e for c in data.endpoint_collections_by_tag.values() for e in c.parse_errors)]
    if faults:
        sys.exit("\n".join(f"{fault.header} {fault.detail}" for fault in faults))
    return data


def make() -> dict[str, str]:
    """The text of each generated module, by its name."""
    document = untraced(make_document(OPERATIONS, ""))
    names = tomllib.loads((CLIENTS / "names.toml").read_text())
    maker = Maker(read_document(document), document, names)
    groups = maker.groups()
    words, objects = maker.shapes()
    operations = [
        (name, endpoint.method.upper(), endpoint.path.get_untrusted_value(), maker.is_keyed(name))
        for name, endpoint in sorted(maker.endpoints().items())
    ]
    loader = FileSystemLoader(TEMPLATES)
    environment = Environment(
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - code of ours, no page
    )
    environment.filters["repr"] = repr
    shared: dict[str, Any] = {"groups": groups, "words": words, "objects": objects, "operations": operations}
    # The ways out are too long for a document that tools read whole, so they come from the table itself.
    shared["codes"] = [
        (constant(code), code, cause, CODES[code].way_out)
        for code, cause in document["x-error-codes"].items()
    ]
    made: dict[str, tuple[str, dict[str, Any]]] = {
        "codes": ("codes", {}),
        "models": ("models", {}),
        "operations": ("operations", {}),
        "resources": ("resources", {"is_async": False}),
        "async_resources": ("resources", {"is_async": True}),
    }
    written = {}
    for module, (template, more) in made.items():
        text = environment.get_template(f"{template}.py.jinja").render(shared | more)
        written[f"{module}.py"] = formatted(text, module)
    return written


def untraced(node: Any) -> Any:
    """The document without a class of its own for each answer that is a shape and a request id.

    >>> untraced({"schema": {"allOf": [{"$ref": "#/x/Gate"}, {"$ref": "#/x/Traced"}]}})
    {'schema': {'$ref': '#/x/Gate'}}
    """
    match node:
        case {"allOf": [shape, {"$ref": str(reference)}]} if reference.endswith("/Traced"):
            return untraced(shape)
        case dict():
            return {name: untraced(value) for name, value in node.items()}
        case list():
            return [untraced(value) for value in node]
        case _:
            return node


def formatted(text: str, module: str) -> str:
    """The text as the formatter of the house would have it."""
    ruff = Path(sys.executable).with_name("ruff")
    command = (ruff, "format", "--stdin-filename", MADE / f"{module}.py", "-")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def main() -> None:
    is_writing = "--write" in sys.argv
    changed = []
    for name, text in make().items():
        path = MADE / name
        if not path.exists() or path.read_text() != text:
            changed.append(path.relative_to(ROOT).as_posix())
            if is_writing:
                path.write_text(text)
    print("\n".join(f"{'written' if is_writing else 'differs'}: {name}" for name in changed))
    if changed and not is_writing:
        sys.exit("The Python client does not fit the interface: run `make clients ARGS=--write`.")


if __name__ == "__main__":
    main()
