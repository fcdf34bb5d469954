"""Finds the server, token and workspace of a call: options first, then variables, then what is kept."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TextIO

import msgspec

from sexton_cli.addresses import DEFAULT_BASE_URL, read_base_url
from sexton_cli.client import Client, open_client
from sexton_cli.credentials import CredentialFile, Credentials, Kept, default_folder
from sexton_cli.data_folder import DATA_VARIABLE, KEY_FILE, default_data, kept_address
from sexton_cli.exits import CONFIG, NO_PERMISSION, USAGE, Fault
from sexton_cli.output import Output
from sexton_cli.saved_sign_in import renew
from sexton_cli.tokens import MAX_CHARS, Token, well_formed
from sexton_cli.variables import BASE_URL_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE


@dataclass(frozen=True, slots=True)
class Given:
    """What stood on the command line."""

    base_url: str | None = None
    workspace: str | None = None
    token: str | None = field(default=None, repr=False)
    token_stdin: bool = False
    output: str = "table"

    @property
    def as_json(self) -> bool:
        return self.output == "json"


class Caller:
    """One command's view of the world; each part is worked out when it is asked for, and may raise Fault."""

    def __init__(self, given: Given, environ: Mapping[str, str], stdin: TextIO | None) -> None:
        self._given = given
        self._environ = environ
        self._stdin = stdin
        self.output = Output(given.output)

    @cached_property
    def file(self) -> CredentialFile:
        return CredentialFile(default_folder(self._environ))

    @cached_property
    def credentials(self) -> Credentials:
        return self.file.load()

    @cached_property
    def base_url(self) -> str:
        """The option, the environment, the server last signed in to, the default."""
        given, variable = self._given.base_url, self._environ.get(BASE_URL_VARIABLE)
        text = given or variable or self.credentials.current or DEFAULT_BASE_URL
        try:
            return read_base_url(text)
        except ValueError as fault:
            source, status = ("--base-url", USAGE) if given else (BASE_URL_VARIABLE, CONFIG)
            raise Fault(f"{source} {text}: {fault}", status=status) from fault

    @property
    def kept(self) -> Kept:
        return self.credentials.of(self.base_url)

    def given_token(self, *, piped: bool) -> Token | None:
        """The flag, the environment, standard input: the first that has one.

        Standard input is read when that was asked for, or, with ``piped``, when it is no terminal.
        """
        if self._given.token is not None:
            return _token(self._given.token, "--token")
        if value := self._environ.get(TOKEN_VARIABLE):
            return _token(value, TOKEN_VARIABLE)
        if self._given.token_stdin or (piped and not self.interactive):
            value = "" if self._stdin is None else self._stdin.read(MAX_CHARS + 2).strip()
            if not value:
                raise Fault(
                    "there is no token on standard input",
                    f"Give one there, with --token or in {TOKEN_VARIABLE}; or run this in a terminal.",
                    status=USAGE,
                )
            return _token(value, "standard input")
        return None

    @property
    def interactive(self) -> bool:
        """Whether there is a person to ask."""
        return self._stdin is not None and self._stdin.isatty()

    @cached_property
    def token(self) -> Token:
        """The given one, else the one kept for this server and no other."""
        given = self.given_token(piped=False)
        if given is not None:
            return given
        if self.kept.token is None:
            raise Fault(f"not signed in to {self.base_url}", self._way_in(), status=NO_PERMISSION)
        return _token(self.kept.token, str(self.file.path))

    def _way_in(self) -> str:
        """How to sign in; where this machine's own server keeps its first key, that is the quickest."""
        data = Path(self._environ.get(DATA_VARIABLE) or default_data())
        key = data / KEY_FILE
        if kept_address(data) != self.base_url or not os.access(key, os.R_OK):
            return "Run 'sexton login'."
        first = f"sexton login --base-url {self.base_url} < {shlex.quote(str(key))}"
        return f"Run 'sexton login', or use the first key of this machine's server: {first}"

    @property
    def given_workspace(self) -> str | None:
        """A name or an id: the option, the environment."""
        return self._given.workspace or self._environ.get(WORKSPACE_VARIABLE) or None

    def keep(self, how: Callable[[Kept], Kept]) -> None:
        """Change what is kept for this server, and make it the current one."""
        url = self.base_url
        self.credentials = self.file.change(lambda all_: all_.with_server(url, how(all_.of(url))))

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A client that bears the token."""
        lasting = self.kept.refresh_token is not None and self.token.value == self.kept.token
        with open_client(self.base_url, self.token.value, renew=self._renewed if lasting else None) as client:
            yield client

    @contextmanager
    def nobody(self) -> Iterator[Client]:
        """A client without a token, for what everybody may ask."""
        with open_client(self.base_url, None) as client:
            yield client

    def _renewed(self) -> str:
        """A fresh token in place of the kept one. Raises Fault."""
        kept, url = self.kept, self.base_url
        token = renew(url, kept.refresh_token or "")

        def replaced(all_: Credentials) -> Credentials:
            if all_.of(url).refresh_token != kept.refresh_token:
                return all_  # Signed out meanwhile, or in again.
            servers = {**all_.servers, url: msgspec.structs.replace(kept, token=token)}
            return msgspec.structs.replace(all_, servers=servers)

        # Where the file cannot be written the next command renews for itself.
        with suppress(Fault):
            self.credentials = self.file.change(replaced)
        return token


def ask_line(stdin: TextIO, prompt: str) -> str | None:
    """One line from a person, asked on standard error; None at the end of input."""
    sys.stderr.write(prompt)
    sys.stderr.flush()
    line = stdin.readline()
    return line.strip() if line else None


def _token(value: str, source: str) -> Token:
    value = value.strip()
    if not well_formed(value):
        raise Fault(
            f"{source} holds no token: it is empty, or has characters that a token cannot have", status=USAGE
        )
    return Token(value, source)
