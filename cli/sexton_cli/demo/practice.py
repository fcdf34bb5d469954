"""A git host and a model to practise with: one repository, GitHub's calls for pull requests, a script."""

import hmac
import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import trio

from sexton_cli.demo.git_server import GitServer, backend
from sexton_cli.demo.stand_in import Receive, Reply, Send
from sexton_cli.exits import UNAVAILABLE, USAGE, Fault
from sexton_cli.model_script import PATHS, ScriptedModel, Turn
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.stop_signal import Stop

ADDRESS: Final = "127.0.0.2"
"""Loopback, but no address of it that programs reach without a proxy: so runs reach it as other hosts."""
REPOSITORY: Final = "acme/shop"
PULLS: Final = f"/api/v3/repos/{REPOSITORY}/pulls"
TOKEN_PREFIX: Final = "practice_"  # noqa: S105 - the beginning of one, as hosts have it
BRANCH: Final = r"^\w[\w./-]{0,200}$"
FILES: Final[Mapping[str, str]] = {
    "shop.py": '''\
"""What a cart costs."""


def total(prices):
    return sum(prices)


def average(prices):
    return total(prices) / len(prices)
''',
    "test_shop.py": """\
import unittest

from shop import average, total


class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([3, 4]), 7)

    def test_average(self):
        self.assertEqual(average([3, 5]), 4)
""",
}

Say = Callable[[str], None]


class PracticeHost(GitServer):
    """Serves the repository to who has the token, opens pull requests, and answers as a model by a script."""

    def __init__(self, folder: Path, token: str, program: Path, turns: Sequence[Turn], say: Say) -> None:
        super().__init__(folder, token, program)
        self._model = ScriptedModel(turns, by_conversation=True)
        self._say = say
        self.pulls: list[dict[str, Any]] = []

    def tell(self, base_url: str, token_file: Path, script: Path | None) -> None:
        """Say what is here, and how a server is started that lets its runs reach it."""
        place = base_url.removeprefix("http://")
        self._say("A git host to practise with is up, until Ctrl-C.")
        self._say(f"  repository  {base_url}/{REPOSITORY}.git")
        self._say(f"  API         {base_url}{PULLS}")
        self._say(f"  token       in {token_file}")
        model = f" SEXTON_ANTHROPIC_BASE_URL={base_url}" if script else ""
        if script:
            self._say(f"  model       {base_url}, which says what {script} has")
        self._say("A server whose agents may reach it:")
        self._say(f"  SEXTON_EGRESS_PRIVATE_HOSTS={place}{model} make up")

    def __repr__(self) -> str:
        return f"<PracticeHost of {self.folder}, {len(self.pulls)} pull requests>"

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Let the model answer what is asked of a model, and the git host all else."""
        if scope["type"] == "http" and scope["path"] in PATHS:
            await self._model(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer as git does, but below the path of the pull requests as GitHub does."""
        if scope["path"] != PULLS:
            return await super().answer(scope, headers, body)
        wanted, said = f"Bearer {self.token}", headers.get("authorization", "")
        if not hmac.compare_digest(said.encode(), wanted.encode()):
            return _json(401, {"message": "Bad credentials"})
        if scope["method"] == "GET":
            return _json(200, self.pulls)
        if scope["method"] != "POST":
            return _json(404, {"message": "Not Found"})
        return self._open(body)

    def _open(self, body: bytes) -> Reply:
        try:
            wanted = msgspec.json.decode(body, type=_Pull)
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            return _json(422, {"message": f"Validation Failed: {fault}"})
        ids = [self._commit(branch) for branch in (wanted.head, wanted.base)]
        if None in ids or ids[0] == ids[1]:
            why = f"No commits between {wanted.base} and {wanted.head}"
            return _json(422, {"message": f"Validation Failed: {why}"})
        pull = {"number": len(self.pulls) + 1, "state": "open", "title": wanted.title, "body": wanted.body}
        pull |= {"head": {"ref": wanted.head, "sha": ids[0]}, "base": {"ref": wanted.base, "sha": ids[1]}}
        self.pulls.append(pull)
        self._say(f"Pull request {pull['number']} is open: {wanted.title} ({wanted.head} into {wanted.base})")
        return _json(201, pull)

    def _commit(self, branch: str) -> str | None:
        """Give the commit of a branch; None where there is no such branch."""
        form = "%(objectname)"
        return self.git(REPOSITORY, "for-each-ref", f"--format={form}", f"refs/heads/{branch}") or None

    def fill(self) -> None:
        """Make the repository, with one commit."""
        (self.folder / f"{REPOSITORY}.git").mkdir(parents=True)
        self.git(REPOSITORY, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        self.git(REPOSITORY, "config", "http.receivepack", "true")
        blobs = {
            name: self.git(REPOSITORY, "hash-object", "-w", "--stdin", given=text)
            for name, text in FILES.items()
        }
        listed = "".join(f"100644 blob {blob}\t{name}\n" for name, blob in blobs.items())
        tree = self.git(REPOSITORY, "mktree", given=listed)
        commit = self.git(REPOSITORY, "commit-tree", tree, "-m", "Add the cart")
        self.git(REPOSITORY, "update-ref", "refs/heads/main", commit)


class _Pull(msgspec.Struct, frozen=True):
    """What GitHub is told of a new pull request, as far as it matters here."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    head: Annotated[str, msgspec.Meta(pattern=BRANCH)]
    base: Annotated[str, msgspec.Meta(pattern=BRANCH)]
    body: str = ""


def _json(status: int, document: object) -> Reply:
    return Reply(status, [(b"content-type", b"application/json")], msgspec.json.encode(document))


def _token_of(file: Path) -> str:
    """Give the token of an earlier practice, or write a new one. Raises Fault."""
    try:
        if file.exists():
            return file.read_text(encoding="utf-8").strip()
        token = TOKEN_PREFIX + secrets.token_hex(18)
        with open(file, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as opened:
            opened.write(token)
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is no text"
        raise Fault(f"{file}: {why}", "Name another with --token-file.", status=USAGE) from fault
    return token


def practise(port: int, token_file: Path, script: Path | None, turns: Sequence[Turn], say: Say) -> None:
    """Serve until SIGINT or SIGTERM. Raises Fault."""
    program = backend()
    if program is None:
        what = "git here cannot serve: there is no git, or one without 'git http-backend'"
        raise Fault(what, "Install git as your system has it: apt-get install git.", status=UNAVAILABLE)
    token = _token_of(token_file)
    with tempfile.TemporaryDirectory(prefix="sexton-practice-", ignore_cleanup_errors=True) as folder:
        host = PracticeHost(Path(folder) / "repositories", token, program, turns, say)
        host.fill()
        trio.run(_serve, host, port, token_file, script)


async def _serve(host: PracticeHost, port: int, token_file: Path, script: Path | None) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            doors = await open_doors(ADDRESS, port)
        except OSError as fault:
            what = f"{ADDRESS}:{port} cannot be had: {fault.strerror}"
            raise Fault(what, "Choose another with --port.", status=UNAVAILABLE) from fault
        stop = Stop()
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, host, doors, stop=stop, grace_s=0))
            host.tell(doors.base_url, token_file, script)
            async for _ in signals:
                stop.set()
                return
