"""The secrets lent to a run: the model names them, and the runner fills them in unseen."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sexton_runner.network import PLACE
from sexton_runner.redact import Redactor
from sexton_runner.tools.addresses import host_allowed


class NotLent(Exception):
    """A place names a secret that this run does not have."""


class LentSecrets:
    """The credentials of one run by name. The lease brings some; a grant may lend more while it goes on."""

    def __init__(
        self,
        secrets: Mapping[str, Any],
        redactor: Redactor,
        *,
        hosts: Mapping[str, Sequence[str]] | None = None,
        allow: Sequence[str] = (),
    ) -> None:
        self._secrets = dict(secrets)
        self._redactor = redactor
        self._hosts = dict(hosts or {})
        # Where an agent may reach one host only, a secret of which nothing is said is meant for that one.
        self._unnamed = list(allow) if len(allow) == 1 else []

    def __repr__(self) -> str:
        return f"<LentSecrets {sorted(self._secrets)}>"

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

    @property
    def offers(self) -> list[str]:
        """Give every place as it is written, with the hosts that it may go to."""
        return [
            f"${{secrets.{place}}} (to {', '.join(self.hosts_of(place.partition('.')[0])) or 'no host'})"
            for place in self.places
        ]

    def hosts_of(self, name: str) -> Sequence[str]:
        """Give the hosts to which a credential may go."""
        return self._hosts.get(name) or self._unnamed

    def check(self, names: frozenset[str], host: str) -> None:
        """Raise ``NotLent`` unless each of these credentials may go to this host."""
        for name in sorted(names):
            if not host_allowed(host, self.hosts_of(name)):
                where = ", ".join(self.hosts_of(name)) or "no host: an operator has to name its hosts"
                raise NotLent(f"the secret {name} must not go to {host}; it may go to {where}")

    def add(self, name: str, data: Mapping[str, Any], hosts: Sequence[str] = ()) -> None:
        """Lend one more; from now on it is taken out of whatever leaves the run."""
        self._redactor.learn(data)
        self._secrets[name] = dict(data)
        if hosts:
            self._hosts[name] = list(hosts)

    def fill(self, text: str, spell: Callable[[str], str] = str) -> tuple[str, frozenset[str]]:
        """Put secrets in their places, each spelt by ``spell``; also tell of which credentials.

        >>> LentSecrets({"hub": {"token": "t0p"}}, Redactor({})).fill("Bearer ${secrets.hub.token}")
        ('Bearer t0p', frozenset({'hub'}))
        """
        filled = PLACE.sub(lambda place: spell(self._value(place[1], place[2])), text)
        return filled, frozenset(place[1] for place in PLACE.finditer(text))

    def fill_json(self, value: Any) -> tuple[Any, frozenset[str]]:
        """Put secrets into every string of a JSON value."""
        match value:
            case str():
                return self.fill(value)
            case dict():
                filled = {key: self.fill_json(inner) for key, inner in value.items()}
                used = frozenset[str]().union(*(names for _, names in filled.values()))
                return {key: one for key, (one, _) in filled.items()}, used
            case list():
                members = [self.fill_json(inner) for inner in value]
                return [one for one, _ in members], frozenset[str]().union(*(names for _, names in members))
            case _:
                return value, frozenset()

    def _value(self, name: str, field: str) -> str:
        data = self._secrets.get(name)
        value = data.get(field) if isinstance(data, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise NotLent(
                f"this run was lent no secret {name}.{field}; it has {', '.join(self.places) or 'none'}"
            )
        return str(value)
