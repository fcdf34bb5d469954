"""Stands in for the part of GitHub's API that triage needs: labels, branches, files and pull requests."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from sexton_cli.demo.stand_in import Reply, StandIn, serving

REPOSITORY: Final = re.compile(r"/repos/([\w.-]+/[\w.-]+)(/.*)")
LABELS: Final = re.compile(r"/issues/([0-9]{1,9})/labels")
REF: Final = re.compile(r"/git/ref/heads/([\w./-]{1,200})")
CONTENTS: Final = re.compile(r"/contents/([\w./-]{1,200})")


class Refused(Exception):
    """An error answer, with its status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class IssuesApi(StandIn):
    """One repository; only who bears the token gets in.

    What came of it can be looked at: ``labels`` by issue, ``branches`` with their files, ``pulls``, and every
    request in ``asked``.
    """

    def __init__(self, repository: str, token: str) -> None:
        super().__init__()
        self.repository, self._token = repository, token
        self.labels: dict[int, list[str]] = {}
        self.branches: dict[str, dict[str, str]] = {"main": {}}
        self.pulls: list[dict[str, Any]] = []

    def __repr__(self) -> str:
        return f"<IssuesApi of {self.repository}, {len(self.asked)} asked>"

    async def answer(self, scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Reply:
        """Answer in JSON whoever bears the token."""
        method, path = scope["method"], scope["path"]
        try:
            status, document = self._answer(method, path, headers.get("authorization", ""), body)
        except Refused as refusal:
            status, document = refusal.status, {"message": str(refusal)}
        return Reply(status, [(b"content-type", b"application/json")], msgspec.json.encode(document))

    def _answer(self, method: str, path: str, authorization: str, body: bytes) -> tuple[int, Any]:
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode()):
            raise Refused(401, "Bad credentials")
        found = REPOSITORY.fullmatch(path)
        if found is None or found[1] != self.repository:
            raise Refused(404, "Not Found")
        place = found[2]
        if method == "GET" and (ref := REF.fullmatch(place)):
            return 200, self._ref(ref[1])
        given = _document(body) if method in {"POST", "PUT"} else {}
        if method == "POST" and (issue := LABELS.fullmatch(place)):
            return 200, self._label(int(issue[1]), given)
        if (method, place) == ("POST", "/git/refs"):
            return 201, self._branch(given)
        if method == "PUT" and (file := CONTENTS.fullmatch(place)):
            return 201, self._write(file[1], given)
        if (method, place) == ("POST", "/pulls"):
            return 201, self._pull(given)
        raise Refused(404, "Not Found")

    def head(self, branch: str) -> str:
        """The commit of a branch. Raises ``Refused`` for one that is not there."""
        return str(self._ref(branch)["object"]["sha"])

    def _ref(self, branch: str) -> dict[str, Any]:
        if branch not in self.branches:
            raise Refused(404, "Not Found")
        content = msgspec.json.encode(self.branches[branch], order="sorted")
        # As long as a commit's id, and another with other files.
        sha = hashlib.sha256(content).hexdigest()[:40]
        return {"ref": f"refs/heads/{branch}", "object": {"type": "commit", "sha": sha}}

    def _label(self, issue: int, given: dict[str, Any]) -> list[dict[str, str]]:
        names = given.get("labels")
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise Refused(422, "labels must be a list of names")
        known = self.labels.setdefault(issue, [])
        known += [name for name in names if name not in known]
        return [{"name": name} for name in known]

    def _branch(self, given: dict[str, Any]) -> dict[str, Any]:
        ref, sha = str(given.get("ref")), given.get("sha")
        branch = ref.removeprefix("refs/heads/")
        if branch == ref or sha != self.head("main"):
            raise Refused(422, "the reference or the commit is not known")
        if branch in self.branches:
            raise Refused(422, "Reference already exists")
        self.branches[branch] = dict(self.branches["main"])
        return self._ref(branch)

    def _write(self, path: str, given: dict[str, Any]) -> dict[str, Any]:
        branch = str(given.get("branch"))
        if branch not in self.branches or not given.get("message"):
            raise Refused(422, "the branch is not known, or there is no message")
        try:
            text = base64.b64decode(str(given.get("content")), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as fault:
            raise Refused(422, "content is not base64 of UTF-8") from fault
        self.branches[branch][path] = text
        return {"content": {"path": path}, "commit": self._ref(branch)["object"]}

    def _pull(self, given: dict[str, Any]) -> dict[str, Any]:
        head, base = given.get("head"), given.get("base")
        if head not in self.branches or base not in self.branches or head == base or not given.get("title"):
            raise Refused(422, "head, base or title is wrong")
        if self.branches[str(head)] == self.branches[str(base)]:
            raise Refused(422, f"No commits between {base} and {head}")
        pull = {"number": 900 + len(self.pulls), "state": "open", "title": given["title"]}
        self.pulls.append(pull | {"head": head, "base": base})
        return pull


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = None
    if not isinstance(document, dict):
        raise Refused(400, "Problems parsing JSON")
    return document


@asynccontextmanager
async def open_issues_api(repository: str, token: str) -> AsyncIterator[IssuesApi]:
    """Serve it on a free port of loopback."""
    api = IssuesApi(repository, token)
    async with serving(api):
        yield api
