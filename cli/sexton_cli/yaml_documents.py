"""Spells an answer as a document of YAML."""

from collections.abc import Mapping
from typing import Any

import msgspec
import yaml


class _Dumper(yaml.SafeDumper):
    """As it is, but without references to what stands there twice."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def document(value: Any, *, explicit_start: bool) -> bytes:
    """In UTF-8; ``explicit_start`` parts it from the one before."""
    plain: Mapping[str, Any] = msgspec.to_builtins(value)
    text: str = yaml.dump(
        plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=explicit_start
    )
    return text.encode()
