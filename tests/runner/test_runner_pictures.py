"""Pictures that models are shown and draw, from a message over a real server to a model server and back."""

from __future__ import annotations

import base64
import hashlib
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from sexton_runner.pictures import MAX_BYTES, MAX_KEPT, Pictures
from sexton_runner.redact import Redactor
from sexton_runner.tool_settings import McpServer, ToolSettings
from sexton_runner.wire import EventFile
from sexton_storage.postgres import PostgresStorage
from tests.fakes.model_servers import KEY, Call, Fail, Say, open_model, words_of
from tests.fakes.shown_pictures import pictures_of
from tests.http.test_http_message_files import send
from tests.runner.test_runner_brought_files import woken
from tests.runner.test_runner_files import at_work, names
from tests.runner.test_runner_kept_workspaces import installed
from tests.worlds.http import HttpWorld
from tests.worlds.runner_agents import Protocol, both
from tests.worlds.samples import NOBODY, agent_files
from tests.worlds.toolbox import Seen, open_bench, open_web

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
JPEG = b"\xff\xd8\xff\xe0" + bytes(range(200))
WEBP = b"RIFF\x08\x00\x00\x00WEBPVP8 "
SECRET = "picture-canary-9e21"


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def data_of(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


async def transcript_of(world: HttpWorld, event: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await world.get(f"{world.ws}/events/{event['event_id']}/transcript?limit=200")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@both
async def test_a_model_sees_what_its_event_brings_and_what_its_tools_find_and_draws(
    postgres_storage: PostgresStorage, tmp_path: Path, protocol: Protocol
) -> None:
    draw = f"import sys; open('b.jpg', 'wb').write(bytes.fromhex('{JPEG.hex()}'))"
    drawn = (data_of(WEBP, "image/webp"), data_of(b"<svg>")) if protocol == "openai" else ()
    script = (
        Say("", (Call("python", {"code": draw}, id="a"),), input_tokens=1_700, output_tokens=9),
        Say("", (Call("read_file", {"path": "b.jpg"}, id="b"), Call("read_file", {"path": "in/a"}, id="c"))),
        Say("It is a heron.", drawn=drawn, input_tokens=3_200, output_tokens=7),
    )
    async with (
        open_model(protocol, *script) as model,
        at_work(postgres_storage, tmp_path, **{protocol: model.base_url}) as world,
    ):
        await world.call("PUT", f"{world.ws}/credentials/llm", json={"provider": protocol, "api_key": KEY})
        config = f"runtime: agent\nprovider: {protocol}\nmodel: m-1\ntools: [python, read_file]"
        agent = await installed(world, agent_files("looks", config, trigger=NOBODY))
        files = [
            {"name": "a", "upload_id": await send(world, PNG)},
            {"name": "notes.txt", "upload_id": await send(world, b"no picture")},
        ]
        event = await woken(world, agent, files)

        assert event["status"] == "processed", event
        assert [pictures_of(question) for question in model.asked] == [
            [("image/png", PNG)],
            [("image/png", PNG)],
            [("image/png", PNG), ("image/jpeg", JPEG)],
        ]
        assert "in/a:" in words_of(model.asked[0])
        assert "[the picture in/a is shown above]" in words_of(model.asked[2])

        # What is kept of them are references; and a question costs what its provider says.
        told = {one["facts"].get("path"): one["facts"] for one in event["evidence"]["tools"]}
        assert told["b.jpg"]["pictures"] == [
            {"path": "b.jpg", "media_type": "image/jpeg", "size": len(JPEG), "sha256": sha256_of(JPEG)}
        ]

        entries = await transcript_of(world, event)
        first = next(one for one in entries if one["kind"] == "prompt" and one["data"].get("pictures"))
        assert [one["sha256"] for one in first["data"]["pictures"]] == [sha256_of(PNG)]

        kept = orjson.dumps([event, entries]).decode()
        for content in (PNG, JPEG, WEBP):
            assert base64.b64encode(content).decode()[:40] not in kept
        assert event["tokens"] == 1_700 + 100 + 3_200 + 9 + 20 + 7

        # What it draws is a file of the run.
        left = await names(world, event)
        if drawn:
            (name,) = left
            assert f"[picture: out/{name} (image/webp, {len(WEBP)} bytes)]" in event["response_text"]
            assert "[picture: not kept: it is no PNG" in event["response_text"]
            assert left[name]["sha256"] == sha256_of(WEBP)
        else:
            assert (left, event["response_text"]) == ({}, "It is a heron.")


async def test_a_model_that_takes_no_pictures_is_asked_without_them(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    def blind(question: dict[str, Any]) -> Say | Fail:
        if pictures_of(question):
            return Fail(400, "invalid_request_error", "this model takes no image_url")
        return Say("I saw nothing.")

    async with (
        open_model("openai", otherwise=blind) as model,
        at_work(postgres_storage, tmp_path, openai=model.base_url) as world,
    ):
        await world.call("PUT", f"{world.ws}/credentials/llm", json={"provider": "openai", "api_key": KEY})
        files = [{"name": "a.png", "upload_id": await send(world, PNG)}]
        for name, more, asked in (("asks", "", 2), ("knows", "\ncontext: {max_pictures: 0}", 1)):
            model.asked.clear()
            config = f"runtime: agent\nprovider: openai\nmodel: m-1{more}"
            agent = await installed(world, agent_files(name, config, trigger=NOBODY))
            event = await woken(world, agent, files)

            assert (event["response_text"], len(model.asked)) == ("I saw nothing.", asked), event
            assert "in/a.png" in words_of(model.asked[-1])


IN_SANDBOX = """
import json, sys
def answer(ask):
    if ask["method"] == "initialize":
        return dict(protocolVersion=ask["params"]["protocolVersion"], capabilities=dict(tools=dict()),
                    serverInfo=dict(name="t", version="1"))
    if ask["method"] == "tools/list":
        return dict(tools=[dict(name="draw", description="Draws.", inputSchema=dict(type="object"))])
    if ask["method"] != "tools/call":
        return dict()
    data = ask["params"]["arguments"]["data"]
    found = [dict(type="image", data=one, mimeType="image/png") for one in data]
    return dict(content=[dict(type="text", text="drawn"), *found])
for line in sys.stdin:
    ask = json.loads(line)
    if "id" in ask:
        print(json.dumps(dict(jsonrpc="2.0", id=ask["id"], result=answer(ask))), flush=True)
"""


async def test_pictures_of_servers_and_requests_become_files_of_the_run(tmp_path: Path) -> None:
    python = str(Path(sys.executable).resolve())
    settings = ToolSettings(
        allow_loopback=True, mcp_servers={"art": McpServer(command=(python, "-I", "-c", IN_SANDBOX))}
    )
    policy = {
        "tools": ["mcp:art", "http_request", "shell", "read_file"],
        "network_policy": {"allow": ["localhost"]},
        "secrets_map": {"hub": {"token": SECRET}},
    }

    def picture(_: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {"content-type": "image/jpeg"}, JPEG

    async with open_web(picture) as web, open_bench(tmp_path, policy=policy, settings=settings) as bench:
        contents = (PNG, PNG, b"<svg>", PNG + SECRET.encode())
        data = [base64.b64encode(one).decode() for one in contents]
        drawn = await bench.box.call("art__draw", {"data": [*data, "no base64!"]}, "c1")

        path = f"out/pictures/{sha256_of(PNG)[:16]}.png"
        assert drawn.content.splitlines() == [
            "drawn",
            "[image]",
            *[f"[picture: {path} (image/png, {len(PNG)} bytes)]"] * 2,
            "[picture: not kept: it is no PNG, JPEG, GIF or WebP]",
            "[picture: not kept: it holds a secret that this run was lent]",
        ]
        assert [one.sha256 for one in drawn.pictures] == [sha256_of(PNG)] * 2

        got = await bench.box.call("http_request", {"url": web.url}, "c2")
        assert got.content.startswith("HTTP 200\ncontent-type: image/jpeg\n[picture: out/pictures/")
        assert [one.media_type for one in got.pictures] == ["image/jpeg"]

        listed = (await bench.call("shell", command="cd out/pictures; sha256sum *")).split()
        assert {sha256_of(PNG), sha256_of(JPEG)} <= {*listed}

        await bench.call("shell", command="seq 9 >lines; printf 'a\\0b' >data; ln -s /etc/passwd link")
        assert await bench.call("read_file", path="lines", from_line=8) == "[lines 8 to 9 of 9]\n8\n9"
        assert (await bench.call("read_file", path="data")).startswith("[no text: 3 bytes, ")

        for name in ("link", "../x", "none"):
            assert not (await bench.box.call("read_file", {"path": name}, "c3")).ok, name


def test_what_is_no_picture_any_more_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    brought, secret = tmp_path / "in", tmp_path / "secret"
    brought.mkdir()
    contents = {"a.png": PNG, "b.png": JPEG, "c.png": b"text", "leak.png": PNG + SECRET.encode()}
    for name, content in contents.items():
        (brought / name).write_bytes(content)
    files = [EventFile(name, "image/png", len(one), sha256_of(one)) for name, one in contents.items()]
    files += [EventFile("gone.png", "image/png", 9, "0" * 64), EventFile("e", "image/png", 0, sha256_of(b""))]
    pictures = Pictures(tmp_path / "kept", Redactor({"hub": {"token": SECRET}}), brought, files)

    png, jpeg = pictures.of_event
    assert [(one.path, one.media_type) for one in (png, jpeg)] == [
        ("in/a.png", "image/png"),
        ("in/b.png", "image/jpeg"),
    ]
    assert pictures.contents([png, jpeg]) == {png.sha256: PNG, jpeg.sha256: JPEG}

    # Where a run shares its runner's user it can change what its event brought.
    secret.write_bytes(PNG)
    (brought / "a.png").unlink()
    (brought / "a.png").symlink_to(secret)
    (brought / "b.png").write_bytes(JPEG + b"more")
    assert pictures.contents([png, jpeg]) == {}
    assert not pictures.is_here(png)

    monkeypatch.setattr("sexton_runner.pictures.MAX_KEPT", 1)
    assert MAX_KEPT > 1

    kept = pictures.keep(PNG, "out/a.png")
    assert pictures.fault_of(PNG) is None
    assert "a picture may have" in (pictures.fault_of(PNG + bytes(MAX_BYTES)) or "")
    assert pictures.fault_of(JPEG) == "the run has 1 pictures already"
    assert pictures.contents([kept]) == {kept.sha256: PNG}

    pictures.refused = "it takes none"
    assert not pictures.is_here(kept)
