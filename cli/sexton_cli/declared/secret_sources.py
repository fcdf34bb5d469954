"""Fetches secrets from where a folder says that they come from, before anything is changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from sexton_actors.manifest.problems import Problems
from sexton_cli.declared.forms import UNSET, Credential, SecretSource

MAX_BYTES: Final = 64 * 1024
"""Far more than a credential may have."""


class SecretSources:
    """Reads variables, and files outside of the folder; what cannot be had is a problem of its line."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str], lines: Mapping[str, int], problems: Problems
    ) -> None:
        self._folder = folder
        self._environ = environ
        self._lines = lines
        self._problems = problems

    def credential(self, form: Credential, path: str) -> dict[str, Any] | None:
        """All that is to be kept under its name; None where the vault has it, or it cannot be had."""
        if form.data is not UNSET:
            found = {field: self.text(source, f"{path}.data.{field}") for field, source in form.data.items()}
            return None if None in found.values() else found
        if form.object is UNSET:
            return None
        text = self.text(form.object, f"{path}.object")
        if text is None:
            return None
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            value = None
        if isinstance(value, dict) and value:
            return value
        self._wrong(f"{path}.object", "what is given there is no JSON object with fields")
        return None

    def text(self, source: SecretSource, path: str) -> str | None:
        """One secret, without the line end behind it."""
        if source.env is not UNSET:
            value = self._environ.get(source.env, "")
            if not value:
                self._wrong(path, f"the variable {source.env} is not set")
            return value or None
        return None if source.file is UNSET else self._of_file(source.file, path)

    def _of_file(self, name: str, path: str) -> str | None:
        place = self._folder / Path(name).expanduser()
        try:
            real = place.resolve(strict=True)
            if real.is_relative_to(self._folder.resolve()):
                self._wrong(path, f"{name} is in the folder itself; a secret has to be outside of it")
                return None
            if not real.is_file():
                self._wrong(path, f"{name} is no plain file")
                return None
            with real.open("rb") as opened:
                raw = opened.read(MAX_BYTES + 1)
            text = raw.decode().removesuffix("\n").removesuffix("\r")
        except OSError as fault:
            self._wrong(path, f"{name}: {fault.strerror}")
            return None
        except UnicodeDecodeError:
            # Its text would quote the secret.
            self._wrong(path, f"{name} is not UTF-8")
            return None
        if not text or len(raw) > MAX_BYTES:
            self._wrong(path, f"{name} is empty" if not text else f"{name} has more than {MAX_BYTES} bytes")
            return None
        return text

    def _wrong(self, path: str, message: str) -> None:
        while path and path not in self._lines:
            path = path.rpartition(".")[0]
        self._problems.add(self._lines.get(path, 1), path, message)
