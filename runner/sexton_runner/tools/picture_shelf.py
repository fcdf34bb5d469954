"""Puts the pictures that tools and models bring where programs find them, and keeps them for the model."""

import hashlib
from dataclasses import replace
from typing import Any

from sexton_runner.pictures import FOLDER, SUFFIXES, Picture, Pictures, media_type_of
from sexton_runner.run import Run
from sexton_runner.tools.base import Found, ToolResult
from sexton_runner.tools.folder_files import FolderFiles, NotMoved

NAME_CHARS = 16


class PictureShelf:
    """The pictures of one run."""

    def __init__(self, run: Run, folder_files: FolderFiles) -> None:
        self._run, self._folder_files = run, folder_files
        files = run.live.lease.event.files
        self.held = Pictures(run.folder / FOLDER, run.redactor, run.brought, files)

    async def shelved(self, result: ToolResult) -> ToolResult:
        """Give a result with its pictures kept, in words and facts too. Raises ``SandboxUnavailable``."""
        if not result.found:
            return result
        lines, pictures = [result.content] if result.content else [], []
        for found in result.found:
            kept = await self.keep(found)
            if isinstance(kept, Picture):
                pictures.append(kept)
            lines.append(f"[picture: {kept}]")
        facts = {**result.facts, "pictures": [facts_of(picture) for picture in pictures]}
        return replace(
            result, content="\n".join(lines), facts=facts, found=(), pictures=(*result.pictures, *pictures)
        )

    async def keep(self, found: Found) -> Picture | str:
        """Keep a picture, below ``out`` where it lies nowhere yet; a word on why it was not kept.

        Raises ``SandboxUnavailable``.
        """
        content = found.content
        if (why := self.held.fault_of(content)) is not None:
            return f"not kept: {why}"
        path = found.path or _path(content)
        try:
            if not found.path:
                await self._folder_files.write(path, content)
            return self.held.keep(content, path)
        except NotMoved as fault:
            return f"not kept: {fault}"
        except OSError as fault:
            return f"not kept: the runner cannot hold it: {fault.strerror}"


def facts_of(picture: Picture) -> dict[str, Any]:
    """Give what evidence and transcripts hold of a picture: a reference, never its bytes."""
    return {
        "path": picture.path,
        "media_type": picture.media_type,
        "size": picture.size,
        "sha256": picture.sha256,
    }


def _path(content: bytes) -> str:
    # By its hash: the same again is the same file.
    name = hashlib.sha256(content).hexdigest()[:NAME_CHARS]
    return f"out/{FOLDER}/{name}.{SUFFIXES[media_type_of(content) or '']}"
