"""Shows a trigger complete: where a known source puts its signature, though the author need not write it."""

from collections.abc import Mapping
from typing import Any

from sexton_actors.webhooks.known_sources import source_of


def filled_in(trigger: Mapping[str, Any]) -> Mapping[str, Any]:
    """A trigger as it is kept, with the header, prefix and time header by which it is verified.

    >>> filled_in({"source": "github", "signature": {"secret_ref": "hook", "prefix": None}})["signature"]
    {'secret_ref': 'hook', 'prefix': 'sha256=', 'header': 'x-hub-signature-256', 'ts_header': None}
    """
    signature = trigger.get("signature")
    if not signature:
        return trigger
    source = source_of(trigger["source"])
    known = {"header": source.header, "prefix": source.prefix, "ts_header": source.ts_header}
    told = {name: value for name, value in known.items() if signature.get(name) is None}
    return {**trigger, "signature": {**signature, **told}}
