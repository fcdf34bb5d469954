"""The models an operator offers, and what they cost."""

from collections.abc import Sequence

import msgspec

from sexton_actors.terms import RUN_NANOS_PER_SEC
from sexton_storage.records.leases import ModelShare, Rates


class Model(msgspec.Struct, frozen=True):
    """A row of the public catalogue; rates in nanos per million tokens."""

    id: str
    provider: str
    context_cap_tokens: int
    input_nanos_per_mtok: int
    cached_input_nanos_per_mtok: int
    output_nanos_per_mtok: int
    cache_write_nanos_per_mtok: int | None = None
    """None: as any other input."""

    @property
    def write_rate(self) -> int:
        """What a million tokens cost that are written to a prompt cache, in nanos."""
        written = self.cache_write_nanos_per_mtok
        return self.input_nanos_per_mtok if written is None else written


class Catalogue:
    """Prices by model; a run without a model of ours costs its time only."""

    def __init__(self, version: str, models: Sequence[Model]) -> None:
        self.version = version
        self.models = tuple(models)
        self._by_id = {model.id: model for model in models}

    def __repr__(self) -> str:
        return f"<Catalogue {self.version}, {len(self.models)} models>"

    def find(self, model: str) -> Model | None:
        return self._by_id.get(model)

    def first_of(self, provider: str) -> str | None:
        """The model that stands first of its provider: what is used where nobody names one."""
        return next((model.id for model in self.models if model.provider == provider), None)

    def rates(self, model: str | None, *, own_key: bool, run_nanos_per_sec: int = RUN_NANOS_PER_SEC) -> Rates:
        """What a lease is billed by; tokens on the tenant's own key cost nothing here.

        >>> Catalogue("2026-01-01", []).rates(None, own_key=False).run_nanos_per_sec
        100000
        """
        row = None if own_key or model is None else self._by_id.get(model)
        if row is None:
            return Rates(run_nanos_per_sec)
        return Rates(
            run_nanos_per_sec,
            row.input_nanos_per_mtok,
            row.cached_input_nanos_per_mtok,
            row.output_nanos_per_mtok,
            row.write_rate,
        )

    def share(self, provider: str, model: str, *, own_key: bool) -> ModelShare:
        """What one model of several is billed by, with nothing used yet.

        >>> catalogue = Catalogue("2026-01-01", [Model("m", "p", 1, 4, 1, 9)])
        >>> catalogue.share("p", "m", own_key=False).cache_write_nanos_per_mtok
        4
        """
        rates = self.rates(model, own_key=own_key)
        return ModelShare(
            provider,
            model,
            own_key,
            rates.input_nanos_per_mtok,
            rates.cached_input_nanos_per_mtok,
            rates.cache_write_nanos_per_mtok,
            rates.output_nanos_per_mtok,
        )
