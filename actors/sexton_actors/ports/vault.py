"""What is asked of the vault beside sealing and opening."""

from typing import Protocol


class MasterKeys(Protocol):
    """The vault, as who keeps it sees it."""

    newest: int

    @property
    def versions(self) -> tuple[int, ...]: ...
    @property
    def keeps_its_keys(self) -> bool: ...
    def rotate(self) -> int: ...
    def retire(self) -> None: ...
    def reseal(self, sealed: bytes, identity: bytes) -> bytes: ...
