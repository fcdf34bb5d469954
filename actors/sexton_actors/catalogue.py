"""The models an operator offers, and what they cost."""

from collections.abc import Sequence

import msgspec

from sexton_actors.terms import RUN_NANOS_PER_SEC
from sexton_storage.records import Rates


class Model(msgspec.Struct, frozen=True):
    """A row of the public catalogue; rates in nanos per million tokens."""

    id: str
    provider: str
    context_cap_tokens: int
    input_nanos_per_mtok: int
    cached_input_nanos_per_mtok: int
    output_nanos_per_mtok: int


class Catalogue:
    """Prices by model; a run without a model of ours costs its time only."""

    def __init__(self, version: str, models: Sequence[Model]) -> None:
        self.version = version
        self.models = tuple(models)
        self._by_id = {model.id: model for model in models}

    def __repr__(self) -> str:
        return f"<Catalogue {self.version}, {len(self.models)} models>"

    def rates(self, model: str | None, *, own_key: bool) -> Rates:
        """What a lease is billed by; tokens on the tenant's own key cost nothing here.

        >>> Catalogue("2026-01-01", []).rates(None, own_key=False).run_nanos_per_sec
        100000
        """
        row = None if own_key or model is None else self._by_id.get(model)
        if row is None:
            return Rates(RUN_NANOS_PER_SEC)
        return Rates(
            RUN_NANOS_PER_SEC,
            row.input_nanos_per_mtok,
            row.cached_input_nanos_per_mtok,
            row.output_nanos_per_mtok,
        )
