"""Reads which models an agent asks, and in which order."""

import re
from typing import Final

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.model import ModelWish
from sexton_actors.manifest.nodes import Scalar, Table

MAX_MODELS: Final = 8
MODEL: Final = re.compile("[!-~]+")
PROVIDER: Final = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]*")
_MODEL_CHARS = 128
_PROVIDER_CHARS = 64
_KEYS = frozenset({"model", "provider"})


def read_model(fields: Fields) -> str | None:
    return fields.optional_text("model", most=_MODEL_CHARS, pattern=MODEL)


def read_provider(fields: Fields) -> str | None:
    return fields.optional_text("provider", most=_PROVIDER_CHARS, pattern=PROVIDER)


def read_models(config: Fields, front: Fields) -> tuple[ModelWish, ...]:
    """The models in the order in which they are asked: ``model``, then those of ``models``.

    ``model`` of SKILL.md counts only where TRIGGER.md names none. A plain name is of ``provider``, where that
    is given; one that stands twice is taken once. Empty: the workspace's own choice.
    """
    provider, named = read_provider(config), read_model(config)
    found = [] if named is None else [ModelWish(named, provider)]
    for place, node in enumerate(config.items("models", most=MAX_MODELS)):
        match node:
            case Table():
                entry = config.within(node, f"models[{place}]")
                entry.only(_KEYS)
                model = entry.text("model", most=_MODEL_CHARS, pattern=MODEL)
                found.append(ModelWish(model, read_provider(entry) or provider))
            case Scalar():
                name = config.text_of(node, f"models[{place}]", most=_MODEL_CHARS, pattern=MODEL)
                found.append(ModelWish(name, provider))
            case _:
                config.wrong(f"models[{place}]", "must be a name, or {model: …, provider: …}", line=node.line)
    own = read_model(front)
    if not found and own is not None:
        found = [ModelWish(own, provider)]
    return tuple(dict.fromkeys(wish for wish in found if wish.model))
