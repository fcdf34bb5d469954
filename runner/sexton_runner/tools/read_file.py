"""The tool that reads one file of the run's folder: its lines, or as a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sexton_runner.pictures import media_type_of
from sexton_runner.redact import Redactor
from sexton_runner.run_files.file_names import NAME_BYTES, fault_of_name, media_type_of as type_by_name
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import Found, ToolResult
from sexton_runner.tools.folder_files import FolderFiles, NotMoved, nameless
from sexton_runner.tools.truncation import clipped

MAX_BYTES: Final = 8 << 20
DEFAULT_LINES: Final = 400
MAX_LINES: Final = 2_000
LOOKED_AT: Final = 8_192
"""A NUL among its first bytes: it is no text."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """``read_file``."""

    folder_files: FolderFiles
    folder: Path
    """Where the runner holds the file meanwhile."""
    redactor: Redactor
    name: str = "read_file"
    parallel_safe: bool = True

    @property
    def description(self) -> str:
        """Say what it reads."""
        return (
            "Read a file of the folder that programs start in, by its relative path. Of a text the lines "
            f"from from_line on are given, {DEFAULT_LINES} if lines does not say more; a PNG, JPEG, GIF or "
            f"WebP is shown to you as a picture. Files may have {MAX_BYTES >> 20} MiB."
        )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            ["path"],
            path={"type": "string", "minLength": 1, "maxLength": NAME_BYTES},
            from_line={"type": "integer", "minimum": 1, "default": 1},
            lines={"type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": DEFAULT_LINES},
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Read it."""
        path: str = arguments["path"]
        if fault := fault_of_name(path):
            return ToolResult(f"path: {fault}", ok=False)
        try:
            with nameless(self.folder) as file:
                sha256, size = await self.folder_files.read(path, file, MAX_BYTES)
                file.seek(0)
                content = file.read()
        except NotMoved as fault:
            return ToolResult(self.redactor.text(str(fault)), ok=False)
        facts = {"path": path, "bytes": size, "sha256": sha256}
        if media_type_of(content[:LOOKED_AT]) is not None:
            return ToolResult("", facts=facts, found=(Found(content, path),))
        if b"\0" in content[:LOOKED_AT]:
            told = f"[no text: {size} bytes, {type_by_name(path)}, sha256 {sha256}]"
            return ToolResult(told, facts=facts)
        text = _lines(content.decode("utf-8", "replace"), arguments)
        return ToolResult(clipped(self.redactor.text(text)), facts=facts)


def _lines(text: str, arguments: Mapping[str, Any]) -> str:
    r"""Give the lines that are asked for, and how many there are.

    >>> _lines("a\nb\nc\n", {"from_line": 2, "lines": 1})
    '[lines 2 to 2 of 3]\nb'
    >>> _lines("", {}), _lines("a", {"from_line": 5})
    ('[it is empty]', '[it has 1 lines]')
    """
    lines, start = text.splitlines(), arguments.get("from_line", 1)
    wanted = lines[start - 1 : start - 1 + arguments.get("lines", DEFAULT_LINES)]
    if not wanted:
        return f"[it has {len(lines)} lines]" if lines else "[it is empty]"
    return "\n".join([f"[lines {start} to {start + len(wanted) - 1} of {len(lines)}]", *wanted])
