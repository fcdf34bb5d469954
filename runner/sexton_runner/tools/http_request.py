"""The tool that makes HTTP requests from the runner, to allowed hosts, with secrets filled in."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from sexton_runner.pictures import media_type_of as media_type_of_picture
from sexton_runner.redact import Redactor
from sexton_runner.run_files.file_names import NAME_BYTES, media_type_of
from sexton_runner.tools.answer_file import AnswerFile
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import Found, ToolResult
from sexton_runner.tools.fetch import Fetched, NotFetched, Wanted, fetch, host_of
from sexton_runner.tools.lent_secrets import LentSecrets, NotLent
from sexton_runner.tools.reach import Reach
from sexton_runner.tools.request_files import FilesOfRequest, RequestFiles
from sexton_runner.tools.truncation import clipped

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
MAX_URL_CHARS = 8_192
MAX_BODY_CHARS = 1 << 20
MAX_HEADERS = 32
DEFAULT_TIMEOUT_S = 30
MAX_TIMEOUT_S = 120
MAX_FILE_TIMEOUT_S = 900
BODIES = ("body", "json", "body_from")
SHOWN_HEADERS = (
    "content-type",
    "location",
    "link",
    "etag",
    "last-modified",
    "retry-after",
    "ratelimit",
    "x-ratelimit-remaining",
    "www-authenticate",
)
BAD_REQUEST = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """``http_request``."""

    secrets: LentSecrets
    reach: Reach
    redactor: Redactor
    files: RequestFiles
    hosts: Sequence[str] = ()
    """Every host that is allowed, as a whole or in part, for the model."""
    parallel_safe: bool = True
    name: str = "http_request"

    @property
    def description(self) -> str:
        """Say what may be asked and which secrets there are, by name."""
        hosts = ", ".join(self.hosts or self.reach.allow) or "none"
        places = ", ".join(self.secrets.offers) or "none"
        return (
            f"Make an HTTP request. Allowed hosts: {hosts}. Secrets that may stand in url, headers, body and "
            f"basic_auth, put in without your seeing them: {places}. Answers are cut at 1 MiB. With save_to "
            "the body of a good answer goes to a file instead, in the folder that programs start in, and "
            f"body_from sends such a file; each up to {self.files.max_bytes >> 20} MiB."
        )

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        text = {"type": "string", "maxLength": MAX_URL_CHARS}
        path = {"type": "string", "minLength": 1, "maxLength": NAME_BYTES}
        return an_object(
            ["url"],
            url={**text, "minLength": 1},
            method={"enum": METHODS, "default": "GET"},
            headers={"type": "object", "additionalProperties": text, "maxProperties": MAX_HEADERS},
            body={"type": "string", "maxLength": MAX_BODY_CHARS, "description": "sent as it is"},
            json={"description": "sent as JSON, in place of body"},
            body_from={**path, "description": "a relative path: the file is sent, in place of body"},
            save_to={
                **path,
                "description": "a relative path; its folders are made, a file there is replaced",
            },
            basic_auth={**text, "description": "user:password for basic authentication"},
            timeout_s={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_FILE_TIMEOUT_S,
                "default": DEFAULT_TIMEOUT_S,
                "description": f"more than {MAX_TIMEOUT_S} with save_to or body_from only",
            },
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Make the request; every answer of a server is a good call, whatever its status."""
        facts = {"method": arguments.get("method", "GET"), "url": self.redactor.text(arguments["url"])}
        try:
            wanted, timeout_s = self._wanted(arguments), _timeout(arguments)
            async with self.files.opened(arguments.get("body_from"), arguments.get("save_to")) as files:
                facts |= files.sent()
                answer = await fetch(files.added_to(wanted), self.reach, timeout_s)
                facts["status"] = answer.status
        except (NotFetched, NotLent) as refusal:
            return ToolResult(self.redactor.text(str(refusal)), ok=False, facts=facts)
        facts |= _facts(answer, files)
        drawn = answer.whole and not answer.sunk and media_type_of_picture(answer.body) is not None
        found = (Found(answer.body),) if drawn else ()
        told = self._told(answer, files, drawn=drawn)
        return ToolResult(told, ok=answer.status < BAD_REQUEST, facts=facts, found=found)

    def _wanted(self, arguments: Mapping[str, Any]) -> Wanted:
        if sum(name in arguments for name in BODIES) > 1:
            raise NotFetched("give one of body, json and body_from")
        if "save_to" in arguments and arguments.get("method") == "HEAD":
            raise NotFetched("an answer to HEAD has no body to save")
        url, in_url = self.secrets.fill(arguments["url"], lambda value: quote(value, safe=""))
        given, in_headers = self.secrets.fill_json(dict(arguments.get("headers", {})))
        headers = {"user-agent": "sexton-agent"} | {name.lower(): value for name, value in given.items()}
        body, in_body = self._body(arguments, headers)
        if "basic_auth" in arguments:
            pair, in_auth = self.secrets.fill(arguments["basic_auth"])
            self._cover(pair)
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
            in_headers |= in_auth
        if any(char in value for value in headers.values() for char in "\r\n\0"):
            raise NotFetched("a header holds a line break")
        used = in_url | in_headers | in_body
        # By the host as it will be asked for: a secret may stand in the url itself.
        self.secrets.check(used, host_of(url))
        return Wanted(
            method=arguments.get("method", "GET"),
            url=url,
            headers=headers,
            body=body,
            secret=bool(used),
        )

    def _body(
        self, arguments: Mapping[str, Any], headers: dict[str, str]
    ) -> tuple[bytes | None, frozenset[str]]:
        if "json" in arguments:
            value, used = self.secrets.fill_json(arguments["json"])
            headers.setdefault("content-type", "application/json")
            return orjson.dumps(value), used
        if "body_from" in arguments:
            headers.setdefault("content-type", media_type_of(arguments["body_from"]))
            return None, frozenset()
        text, used = self.secrets.fill(arguments.get("body", ""))
        return (text.encode() if "body" in arguments else None), used

    def _cover(self, pair: str) -> None:
        # A password that is shorter than what is looked for by itself is still a secret beside its user.
        self.redactor.learn({"basic_auth": pair})

    def _told(self, answer: Fetched, files: FilesOfRequest, *, drawn: bool) -> str:
        lines = [f"HTTP {answer.status}"]
        lines += [f"{name}: {answer.headers[name]}" for name in SHOWN_HEADERS if name in answer.headers]
        if answer.sunk and files.saving is not None:
            return clipped(self.redactor.text("\n".join([*lines, "", _saved(files.saving, files.save_to)])))
        coding = answer.headers.get("content-encoding", "identity")
        if drawn:
            pass  # What it shows is kept as a picture, and told of there.
        elif coding.lower() != "identity":
            lines += ["", f"[{len(answer.body)} bytes in the coding {coding}, which is not read]"]
        else:
            text = answer.body.decode("utf-8", "replace")
            if not answer.whole:
                # What the cut went through may be the beginning of a secret.
                text = f"{text[: self.redactor.certain(text)]}\n[cut at 1 MiB]"
            lines += ["", text]
        return clipped(self.redactor.text("\n".join(lines)))


def _timeout(arguments: Mapping[str, Any]) -> int:
    given: int = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
    if given > MAX_TIMEOUT_S and not {"save_to", "body_from"} & arguments.keys():
        raise NotFetched(f"timeout_s is {MAX_TIMEOUT_S} at most, but with save_to or body_from")
    return given


def _facts(answer: Fetched, files: FilesOfRequest) -> Mapping[str, Any]:
    if answer.sunk and files.saving is not None:
        saved = files.saving
        about = {"bytes": saved.size, "sha256": saved.sha256, "media_type": saved.media_type}
        return {"saved_to": files.save_to, **about}
    return {"bytes": len(answer.body), "sha256": hashlib.sha256(answer.body).hexdigest()}


def _saved(file: AnswerFile, name: str | None) -> str:
    about = f"{file.size} bytes, {file.media_type}, sha256 {file.sha256}"
    return f"[saved to {name}: {about}{f'; {file.changes}' if file.changes else ''}]"
