"""Fuzzes one target in this process, with coverage of the product: ``child.py SITE TARGET OPTION…``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(words: list[str]) -> None:
    """Options are libFuzzer's; it ends the process."""
    site, name, *options = words
    sys.path += [str(ROOT), str(ROOT / "clients" / "python"), site]
    import atheris  # noqa: PLC0415  (of an environment of its own, which the words name)

    with atheris.instrument_imports(
        include=["sexton_http", "sexton_actors", "sexton_storage", "sexton_runner"]
    ):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415  (measured only if imported here)

    atheris.Setup(["fuzz", *options], TARGETS[name], enable_python_coverage=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
