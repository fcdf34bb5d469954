"""What can be asked of the keeper of the vault."""

from collections.abc import Mapping

import msgspec

from sexton_actors.refusal import Refusal
from sexton_engine import Message


class VaultState(msgspec.Struct, frozen=True):
    sealing_version: int
    """The version of the master key that seals."""
    secrets: Mapping[int, int]
    """By the version of each master key that is there, or is needed: how many secrets it has sealed."""
    keeps_its_keys: bool
    """In a file of the server; else they are given by the operator."""

    @property
    def stale(self) -> int:
        """Secrets that an older key has sealed."""
        return sum(count for version, count in self.secrets.items() if version < self.sealing_version)


class ReadVault(msgspec.Struct, Message[VaultState | Refusal], frozen=True):
    pass


class Rotate(msgspec.Struct, Message[VaultState | Refusal], frozen=True):
    """Make a newer master key, unless secrets wait for the newest one still; they are put under it."""


class Reseal(msgspec.Struct, Message[None], frozen=True):
    """Put a page of secrets under the newest key, and forget the older ones when nothing needs them."""
