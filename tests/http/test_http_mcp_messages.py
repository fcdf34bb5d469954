"""The MCP endpoint holds its own against whatever comes as a message, and says what is wrong with it."""

from typing import Any

import msgspec
import pytest

from sexton_http.describe.openapi import make_document
from sexton_http.gateway.operations import Auth
from sexton_http.routes.mcp import tool_calls
from sexton_http.routes.mcp.tool_results import MAX_BYTES, bounded_document, size_of
from sexton_http.routes.mcp.tools import HARMLESS, LEFT_OUT, SHOWN, make_tools, tool_name
from sexton_http.routes.table import OPERATIONS
from sexton_storage.records.users import Role
from tests.worlds.assistant import META, MODERN, error_of, names_of, rpc, send
from tests.worlds.http import HttpWorld

TOOLS = make_tools(OPERATIONS, make_document(OPERATIONS, ""))
MALFORMED: list[tuple[bytes, int]] = [
    (b"", -32700),
    (b"{", -32700),
    (b'{"a": "\xff"}', -32700),
    (b"[" * 100_000, -32700),
    (b"[]", -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
    (b'"ping"', -32600),
    (b'{"id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % 10**30, -32600),
    (b'{"jsonrpc":"2.0","id":"%b","method":"ping"}' % (b"x" * 257), -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % (b"m" * 129), -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":"confirm-x","result":{}}', -32600),
    (b'{"jsonrpc":"2.0","id":"confirm-019363b0-0000-7000-8000-00000000ffff","result":{}}', -32600),
]


def call(name: Any, arguments: Any = None) -> dict[str, Any]:
    return {"name": name, "arguments": {} if arguments is None else arguments}


async def test_what_is_no_message_is_refused_by_the_protocols_own_codes(world: HttpWorld) -> None:
    for body, code in MALFORMED:
        answer = await send(world, body)
        assert error_of(answer) == (400, code), body[:80]
        assert answer.headers["content-type"] == "application/json"

    for method in ("notifications/initialized", "notifications/cancelled", "notifications/of/nobody"):
        answer = await send(world, msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": {}}))
        assert (answer.status_code, answer.content) == (202, b"")

    huge = await send(world, b'{"a":"%b"}' % (b"x" * 300_000))
    plain = await send(world, b"{}", headers={"content-type": "text/plain"})
    assert (huge.status_code, huge.json()["error_code"]) == (413, "UZ-REQ-002")
    assert (plain.status_code, plain.json()["error_code"]) == (415, "UZ-REQ-005")

    for method in ("GET", "DELETE"):
        assert (await world.call(method, "/mcp")).status_code == 405


async def test_a_revision_without_a_handshake_says_everything_with_each_request(world: HttpWorld) -> None:
    cases: list[tuple[dict[str, Any], dict[str, str], tuple[int, int]]] = [
        ({"_meta": {}}, {}, (400, -32602)),
        ({"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}}, {}, (400, -32020)),
        ({}, {"mcp-method": "tools/call"}, (400, -32020)),
        ({}, {"mcp-protocol-version": "1999-01-01"}, (400, -32020)),
    ]
    for params, headers, expected in cases:
        answer = await rpc(world, "tools/list", params, modern=True, headers=headers)
        assert error_of(answer) == expected, (params, headers)

    unknown = await rpc(world, "tools/list", headers={"mcp-protocol-version": "1999-01-01"})
    assert error_of(unknown) == (400, -32022)
    assert MODERN in unknown.json()["error"]["data"]["supported"]

    misnamed = await rpc(world, "tools/call", call("whoami"), modern=True, headers={"mcp-name": "other"})
    encoded = {"mcp-name": "=?base64?d2hvYW1p?="}
    assert error_of(misnamed) == (400, -32020)
    assert (await rpc(world, "tools/call", call("whoami"), modern=True, headers=encoded)).status_code == 200

    for method in ("initialize", "ping", "prompts/list", "resources/list"):
        assert error_of(await rpc(world, method, modern=True)) == (404, -32601)

    found = (await rpc(world, "server/discover", modern=True)).json()["result"]
    assert (found["supportedVersions"], found["resultType"], found["cacheScope"]) == (
        [MODERN],
        "complete",
        "private",
    )


async def test_older_clients_have_a_session_that_any_server_knows_and_nobody_else_can_use(
    world: HttpWorld,
) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {}}
    begun = await rpc(world, "initialize", hello)
    session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
    assert begun.json()["result"]["protocolVersion"] == "2025-06-18"
    assert (await rpc(world, "ping", headers=session)).json()["result"] == {}

    later = await rpc(world, "initialize", {**hello, "protocolVersion": "2031-01-01"})
    assert later.json()["result"]["protocolVersion"] == "2025-11-25"

    other = await rpc(world, "ping", token=world.user_token(), headers=session)
    forged = await rpc(world, "ping", headers={**session, "mcp-session-id": "x" * 40})
    world.pass_ms(8 * 24 * 3_600_000)
    late = await rpc(world, "ping", headers=session)
    assert {error_of(one) for one in (other, forged, late)} == {(404, -32600)}

    assert error_of(await rpc(world, "tools/call", call("no_such_tool"))) == (200, -32602)
    assert error_of(await rpc(world, "prompts/list")) == (200, -32601)
    assert error_of(await rpc(world, "initialize", {})) == (200, -32602)


async def test_a_page_of_another_site_and_a_stranger_are_sent_away(world: HttpWorld) -> None:
    own = await rpc(world, "tools/list", headers={"origin": world.base_url})
    named = {"origin": "http://rebound.example:1", "host": "rebound.example:1"}
    rebound = await rpc(world, "tools/list", headers=named)
    stranger = await rpc(world, "tools/list", token=None)

    assert own.status_code == 200
    assert (rebound.status_code, rebound.json()["error_code"]) == (403, "UZ-AUTH-001")
    assert (stranger.status_code, stranger.headers["www-authenticate"]) == (401, 'Bearer realm="sexton"')


async def test_a_tool_that_is_not_offered_says_what_it_would_take(world: HttpWorld) -> None:
    viewer = world.user_token(Role.VIEWER)
    said = [
        (await rpc(world, "tools/call", call(name), token=token, query=query)).json()["error"]["message"]
        for name, token, query in (
            ("event_send", "", ""),
            ("event_send", viewer, "?write=1"),
            ("jobs_list", "", ""),
            ("queue_view", "", "?tools=all"),
        )
    ]

    assert "?write=1" in said[0]
    assert "needs the role user" in said[1]
    assert "?tools=all" in said[2]
    assert "needs a platform admin" in said[3]


async def test_arguments_are_checked_by_the_route_and_told_to_the_model(world: HttpWorld) -> None:
    there = str(world.installation.workspace_id)
    cases: list[tuple[str, Any, str]] = [
        ("agents_list", {}, "UZ-REQ-001: workspace_id: missing"),
        ("agents_list", {"workspace_id": there, "no": 1}, "UZ-REQ-001: no: no argument of agents_list"),
        ("agents_list", {"workspace_id": "x"}, "UZ-UUIDV7-009"),
        ("agents_list", {"workspace_id": "../../v1/api-keys"}, "UZ-REQ-001"),
        ("agents_list", {"workspace_id": there, "limit": 10**6}, "UZ-REQ-001: limit"),
        ("agents_list", {"workspace_id": there, "limit": [1]}, "UZ-REQ-001: limit"),
        ("event_wait", {"workspace_id": there, "event_id": there, "timeout_s": 0}, "UZ-REQ-001: timeout_s"),
        ("event_send", {"workspace_id": there, "zombie_id": there, "message": 7}, "UZ-REQ-001"),
        (
            "event_send",
            {"workspace_id": there, "zombie_id": there, "message": "x" * 200_000},
            "UZ-REQ-00",
        ),
    ]
    for name, arguments, code in cases:
        result = (await rpc(world, "tools/call", call(name, arguments), query="?write=1")).json()["result"]
        assert result["isError"], arguments
        assert code in result["content"][0]["text"], (result, code)

    wrong = await rpc(world, "tools/call", {"name": "whoami", "arguments": [1]})

    assert error_of(wrong) == (200, -32602)


async def test_a_list_that_is_too_long_ends_with_a_cursor_that_goes_on(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_calls, "MAX_BYTES", 4_000)
    there = str(world.installation.workspace_id)
    zombie = (await world.install())["zombie_id"]
    for _ in range(12):
        await world.post(f"{world.ws}/zombies/{zombie}/messages", {"message": "Look."})

    ids: list[str] = []
    sizes: list[int] = []
    texts_agree: list[bool] = []
    cursor: dict[str, str] = {}
    while len(sizes) < 12:
        arguments = {"workspace_id": there, "limit": 12, **cursor}
        result = (await rpc(world, "tools/call", call("events_list", arguments))).json()["result"]
        page = result["structuredContent"]
        texts_agree.append(msgspec.json.decode(result["content"][1]["text"]) == page)
        sizes.append(size_of(page))
        ids += [item["event_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}

    assert len(ids) == len(set(ids)) == 12
    assert len(sizes) > 1
    assert max(sizes) <= 4_000
    assert all(texts_agree)


def test_every_route_that_people_call_is_a_tool_or_says_why_it_is_none() -> None:
    names = {tool.operation.name for tool in TOOLS.values()}
    assert not names & LEFT_OUT.keys()
    assert LEFT_OUT.keys() | SHOWN.keys() | HARMLESS <= {one.name for one in OPERATIONS}

    for operation in OPERATIONS:
        if operation.name in names:
            assert operation.auth in {Auth.MEMBER, Auth.PLATFORM}
            assert not operation.secret, operation.name


def test_schemas_stand_alone_and_names_stay_within_what_clients_take() -> None:
    for tool in TOOLS.values():
        text = msgspec.json.encode(tool.schema).decode()
        assert "#/components/" not in text, tool.name
        assert set(tool.schema["required"]) <= tool.schema["properties"].keys(), tool.name
        assert tool.name.replace("_", "").isalnum(), tool.name
        assert len(tool.name) <= 64
    assert tool_name("list_zombies") == "agents_list"


@pytest.mark.parametrize(
    "document", [{"items": [{"a": "x" * 60} for _ in range(5_000)]}, {"a": {"b": "x" * 10**6}}]
)
def test_what_cannot_be_paged_is_cut_and_says_so(document: dict[str, Any]) -> None:
    cut = bounded_document(document)

    assert size_of(cut) <= MAX_BYTES
    assert "items_left_out" in cut or "more characters" in cut["a"]["b"]


async def test_names_in_a_list_are_those_of_the_role(world: HttpWorld) -> None:
    viewer, operator = world.user_token(Role.VIEWER), world.user_token(Role.OPERATOR)
    limited = world.user_token(Role.OPERATOR, workspace_id=world.installation.workspace_id)
    seen = {
        name: names_of(await rpc(world, "tools/list", token=token, query=query))
        for name, token, query in (
            ("viewer", viewer, "?write=1&tools=all"),
            ("reads", operator, ""),
            ("writes", operator, "?write=1"),
            ("limited", limited, "?tools=all"),
            ("platform", world.admin_token(), "?tools=all"),
        )
    }

    assert all(TOOLS[name].reads for name in seen["viewer"] | seen["reads"])
    assert "event_transcript" in seen["reads"] - seen["viewer"]
    assert seen["writes"] - seen["reads"] == {
        name for name, tool in TOOLS.items() if tool.shown and not tool.reads
    }
    assert {"balance_get", "queue_view"}.isdisjoint(seen["limited"])
    assert "queue_view" in seen["platform"]
