"""Storage in plain dictionaries, for unit tests and the simulator."""

from sexton_storage.memory.faults import Faults
from sexton_storage.memory.storage import MemoryStorage, open_memory_storage

__all__ = ["Faults", "MemoryStorage", "open_memory_storage"]
