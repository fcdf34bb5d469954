"""The number of the schema that this release brings, for people who compare releases."""

from importlib import resources


def schema_number() -> int:
    """The number of the newest migration that is shipped.

    >>> schema_number() >= 56
    True
    """
    names = [file.name for file in resources.files("sexton_storage.migrations").iterdir()]
    return max(int(name[:4]) for name in names if name.endswith(".sql"))
