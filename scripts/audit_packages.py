"""Asks for known faults of packages: ``audit_packages.py PIP-AUDIT LOCK...``; 0 none, 1 some, 2 unknown."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

NONE, SOME, UNKNOWN = 0, 1, 2
SERVICES: Final = ("osv", "pypi")
"""Where advisories come from; the second is asked where the first cannot be."""


def verdict(report: Mapping[str, Any]) -> tuple[int, list[str]]:
    """What pip-audit's report comes to: an exit status, and lines to print.

    >>> verdict({"dependencies": [{"name": "a", "version": "1", "vulns": []}]})
    (0, ['1 packages looked up, no known faults'])
    >>> verdict({"dependencies": [{"name": "a", "skip_reason": "not found"}]})[0]
    2
    """
    rows = report["dependencies"]
    skipped = [row["name"] for row in rows if "skip_reason" in row]
    faults = [
        f"{row['name']} {row['version']}: {fault['id']}, mended in {mended(fault)}"
        for row in rows
        for fault in row.get("vulns", ())
    ]
    if faults:
        return SOME, faults
    if skipped or not rows:
        some = f"{len(skipped)} of {len(rows)} packages could not be looked up ({', '.join(skipped[:5])} ...)"
        return UNKNOWN, [f"{some}: offline, or an index without advisories. Nothing is known of them."]
    return NONE, [f"{len(rows)} packages looked up, no known faults"]


def mended(fault: Mapping[str, Any]) -> str:
    """The releases without the fault."""
    return ", ".join(fault["fix_versions"]) or "none"


def main(program: str, *locks: str) -> int:
    """Print what is found in each lock; the exit status, of which a known fault is the worst."""
    found = {look(program, lock) for lock in locks}
    return SOME if SOME in found else max(found)


def look(program: str, lock: str) -> int:
    """Print what is found in one of them."""
    said = ""
    for service in SERVICES:
        words = [program, "--disable-pip", "--require-hashes", "-r", lock, "-s", service]
        asked = subprocess.run(
            [*words, "--format", "json", "--progress-spinner", "off", "--timeout", "10"],
            capture_output=True,
            text=True,
            check=False,
        )
        said = asked.stderr.strip().splitlines()[-1] if asked.stderr.strip() else said
        try:
            status, lines = verdict(json.loads(asked.stdout))
        except ValueError:
            continue
        if status != UNKNOWN or service == SERVICES[-1]:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            return status
    sys.stdout.write(f"no advisories could be had, so nothing was looked up: {said[-300:]}\n")
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
