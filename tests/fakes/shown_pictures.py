"""The pictures of a question, as a model server of either protocol gets them."""

import base64
from collections.abc import Mapping
from typing import Any


def pictures_of(question: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Give the media type and the bytes of each picture of a question, in order."""
    found: list[tuple[str, bytes]] = []

    def look(value: Any) -> None:
        match value:
            case {"type": "image", "source": {"media_type": kind, "data": data}}:
                found.append((kind, base64.b64decode(data)))
            case {"type": "image_url", "image_url": {"url": url}}:
                head, _, data = url.partition(";base64,")
                found.append((head.removeprefix("data:"), base64.b64decode(data)))
            case dict():
                for inner in value.values():
                    look(inner)
            case list():
                for inner in value:
                    look(inner)
            case _:
                pass

    look(dict(question))
    return found
