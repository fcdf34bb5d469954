"""The secrets that a run was lent: named by the model, put in by the runner, and seen by neither."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from sexton_runner.redact import Redactor

PLACE = re.compile(r"\$\{secrets\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_.-]{1,128})\}")


class NotLent(Exception):
    """A place names a secret that this run does not have."""


class Lent:
    """The credentials of one run by name. The lease brings some; a grant may lend more while it goes on."""

    def __init__(self, secrets: Mapping[str, Any], redactor: Redactor) -> None:
        self._secrets = dict(secrets)
        self._redactor = redactor

    def __repr__(self) -> str:
        return f"<Lent {sorted(self._secrets)}>"

    @property
    def places(self) -> list[str]:
        """Give what may be named: every ``NAME.FIELD``."""
        return sorted(
            f"{name}.{field}"
            for name, data in self._secrets.items()
            if isinstance(data, Mapping)
            for field, value in data.items()
            if isinstance(value, str | int | float)
        )

    def add(self, name: str, data: Mapping[str, Any]) -> None:
        """Lend one more; from now on it is taken out of whatever leaves the run."""
        self._redactor.learn(data)
        self._secrets[name] = dict(data)

    def fill(self, text: str, spell: Callable[[str], str] = str) -> tuple[str, bool]:
        """Put secrets in their places, each spelt by ``spell``; also tell whether there were any.

        >>> Lent({"hub": {"token": "t0p"}}, Redactor({})).fill("Bearer ${secrets.hub.token}")
        ('Bearer t0p', True)
        """
        return PLACE.sub(lambda place: spell(self._value(place[1], place[2])), text), bool(PLACE.search(text))

    def fill_json(self, value: Any) -> tuple[Any, bool]:
        """Put secrets into every string of a JSON value."""
        match value:
            case str():
                return self.fill(value)
            case dict():
                filled = {key: self.fill_json(inner) for key, inner in value.items()}
                return {key: one for key, (one, _) in filled.items()}, any(
                    used for _, used in filled.values()
                )
            case list():
                members = [self.fill_json(inner) for inner in value]
                return [one for one, _ in members], any(used for _, used in members)
            case _:
                return value, False

    def _value(self, name: str, field: str) -> str:
        data = self._secrets.get(name)
        value = data.get(field) if isinstance(data, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise NotLent(
                f"this run was lent no secret {name}.{field}; it has {', '.join(self.places) or 'none'}"
            )
        return str(value)
