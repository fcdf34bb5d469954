"""Looks for examples in those modules alone that have some: to import all others would take longer."""

from pathlib import Path

EXAMPLE = b">>> "


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_other = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_other and EXAMPLE not in collection_path.read_bytes() else None
