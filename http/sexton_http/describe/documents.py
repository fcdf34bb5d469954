"""The pages that a server shows of itself: plain, small, and with nothing from elsewhere."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, Final

import msgspec

from sexton_http.describe.openapi import anchor, make_document
from sexton_http.describe.reference import facts
from sexton_http.gateway.operations import Operation
from sexton_http.identity.context import Documents
from sexton_http.problems import CODES
from sexton_http.routes.mcp.tools import Tool, make_tools

_ADDRESS: Final = "where the address of a server comes"
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: .3rem .5rem; text-align: left; vertical-align: top; }
code { font: 0.9em ui-monospace, monospace; }
:target { outline: 2px solid; }
"""


def make_documents(operations: Sequence[Operation], base_url: str) -> Documents:
    made = _made(tuple(operations))
    return Documents(
        openapi=msgspec.json.encode(base_url).join(made.around_address),
        docs=made.docs,
        errors=made.errors,
        document=made.document,
        operations={operation.name: operation for operation in operations},
        tools=made.tools,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """What is the same under every address."""

    document: dict[str, Any]
    around_address: tuple[bytes, bytes]
    """The text of the document, before and after the server's address."""
    docs: bytes
    errors: bytes
    tools: dict[str, Tool]


@lru_cache(maxsize=8)
def _made(operations: tuple[Operation, ...]) -> _Made:
    document = make_document(operations, "")
    return _Made(
        document=document,
        around_address=_around_address(document),
        docs=_page("Reference", _docs(operations)),
        errors=_page("Error codes", _errors()),
        tools=make_tools(operations, document),
    )


def _around_address(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Two texts for all addresses: to encode the document again for each would take longest."""
    text = msgspec.json.encode({**document, "servers": [{"url": _ADDRESS}]})
    before, _, after = text.partition(msgspec.json.encode(_ADDRESS))
    return before, after


def _page(title: str, body: str) -> bytes:
    metas = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"<head>{metas}<title>{title} · Sexton</title><style>{_STYLE}</style></head>"
    return f'<!doctype html><html lang="en">{head}<body>{body}</body></html>'.encode()


def _docs(operations: Sequence[Operation]) -> str:
    parts = ['<h1>Reference</h1><p>As a document: <a href="/openapi.json">OpenAPI 3.1</a>.']
    parts.append(' The codes: <a href="/docs/errors">error codes</a>.</p>')
    for tag in dict.fromkeys(operation.tag for operation in operations):
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts.extend(_route(operation) for operation in operations if operation.tag == tag)
    return "".join(parts)


def _route(operation: Operation) -> str:
    codes = ", ".join(f'<a href="/docs/errors#{code}">{code}</a>' for code in operation.all_codes())
    said = "".join(f"<li>{escape(fact)}</li>" for fact in facts(operation))
    return (
        f'<section id="{anchor(operation)}"><h3><code>{operation.method} {escape(operation.path)}</code></h3>'
        f"<p>{escape(operation.summary)} {escape(operation.notes)}</p>"
        f"<ul>{said}<li>Codes: {codes}</li></ul></section>"
    )


def _errors() -> str:
    rows = "".join(
        f'<tr id="{row.code}"><td><code>{row.code}</code></td><td>{row.status}</td>'
        f"<td>{escape(row.title)}</td><td>{_text(row.cause)}</td><td>{_text(row.way_out)}</td>"
        f"<td>{', '.join(where.value for where in row.shown)}</td></tr>"
        for row in CODES.values()
    )
    head = "<tr><th>Code</th><th>Status</th><th>Title</th><th>Means</th><th>What to do</th><th>Met</th></tr>"
    return f"<h1>Error codes</h1><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _text(markdown: str) -> str:
    """A sentence, of whose Markdown only code is used.

    >>> _text("Wait for `Retry-After` & <go> on.")
    'Wait for <code>Retry-After</code> &amp; &lt;go&gt; on.'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(markdown))
