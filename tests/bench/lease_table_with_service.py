"""A lease service with a process of its own, which does nothing but stay."""

import sys
from pathlib import Path
from typing import Any

from bench.leasebench.adapters import plain_sql


class ServedTable(plain_sql.PlainSql):
    title = "a table beside a service"

    def service(self, dsn: str, folder: Path) -> list[str]:
        return [sys.executable, "-c", "import time; time.sleep(3600)"]

    def ready(self, folder: Path) -> dict[str, Any] | None:
        return {}
