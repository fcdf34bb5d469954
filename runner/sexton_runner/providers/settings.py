"""What an operator may choose about the models that runs speak with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sexton_runner.providers.retries import Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """``addresses`` replace, or add to, those that providers are known by."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = field(default_factory=Patience)
