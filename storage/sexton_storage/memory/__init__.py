"""Storage in plain dictionaries: for tests, the simulator, and servers that keep nothing."""

from sexton_storage.memory.faults import Faults
from sexton_storage.memory.storage import MemoryStorage, open_memory_storage

__all__ = ["Faults", "MemoryStorage", "open_memory_storage"]
