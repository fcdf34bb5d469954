"""Credentials, providers of models, memory and chat."""

from typing import Final

from sexton_http.error_codes.code import ANSWER, ANSWER_EVENT, Code

# fmt: off
ROWS: Final = (
    Code(
        "UZ-CRED-001", 503, "LLM provider API key missing", ANSWER_EVENT,
        cause="The workspace has no key for the provider; add a credential.",
        way_out="Keep the key of the provider: `sexton credentials llm set PROVIDER`. If the agent names a credential of its own, put `api_key` into that one. Then replay the event.",
        detail="The vault has no api_key in the credential gone.",
    ),
    Code(
        "UZ-CRED-003", 503, "Platform LLM key missing", ANSWER_EVENT,
        cause="The platform has no key for the provider; an admin can add one.",
        way_out="Give the workspace a key of its own (`sexton credentials llm set PROVIDER`), name another provider in `TRIGGER.md`, or ask a platform admin to add a key for all (`sexton platform-key set`).",
        detail="The platform has no key for openai.",
    ),
    Code(
        "UZ-VAULT-001", 400, "Credential data must be a non-empty JSON object", ANSWER,
        cause="data is an object with at least one key.",
        way_out='Send `data` as an object, such as `{"token": "…"}`: `sexton credentials set NAME --field token` makes it for you.',
        detail="/data: must be an object with at least one key", facts={"pointer": "/data"},
    ),
    Code(
        "UZ-VAULT-002", 400, "Credential data too large", ANSWER,
        cause="data is at most 4 KB as text.",
        way_out="Keep only what is secret, and put the rest into the agent's files. A long certificate chain goes into a credential of its own.",
        detail="/data: 4104 bytes as text, 4096 may be", facts={"pointer": "/data"},
    ),
    Code(
        "UZ-MCP-001", 409, "Too many MCP servers", ANSWER,
        cause="A workspace declares 64 MCP servers at most; remove one first.",
        way_out="`sexton mcp-server list` shows them; remove one that no agent names (`sexton mcp-server remove NAME`).",
        detail="the workspace has 64 MCP servers; remove one first",
    ),
    Code(
        "UZ-PROVIDER-001", 400, "Credential reference missing", ANSWER,
        cause="A self-managed provider names its credential.",
        way_out="Keep the credential first (`sexton credentials set NAME`, with `provider`, `api_key` and `model`), then name it in `credential_ref`.",
        detail="/credential_ref: name the credential of a self-managed provider",
    ),
    Code(
        "UZ-PROVIDER-002", 400, "Provider credential not found", ANSWER,
        cause="The vault has no credential of this name.",
        way_out="`sexton credentials list` shows the names of the workspace in use; write one of them, letter by letter, or keep a new one.",
        detail="/credential_ref: no vault has a credential named none",
    ),
    Code(
        "UZ-PROVIDER-003", 400, "Provider credential incomplete", ANSWER,
        cause="The credential lacks provider, api_key or model.",
        way_out="Set the credential again with all of `provider`, `api_key` and `model`: `missing` names what it lacks.",
        detail="/credential_ref: the credential half lacks model", facts={"missing": ["model"]},
    ),
    Code(
        "UZ-PROVIDER-004", 400, "Model not in the catalogue", ANSWER,
        cause="The catalogue has no such model.",
        way_out="`sexton model list` shows the models. For one that is not there use a credential of your own (self-managed), or have the operator add it to `catalogue.json`.",
        detail="/model: the catalogue has no llama-at-home",
    ),
    Code(
        "UZ-PROVIDER-005", 404, "Platform key not found", ANSWER,
        cause="The tenant has no entry for this provider.",
        way_out="`sexton platform-key list` lists the entries; write the provider as it stands there.",
        detail="there is no entry for openai",
    ),
    Code(
        "UZ-MEM-001", 403, "Memory scope denied", ANSWER,
        cause="A key reaches the memory of its own agent only.",
        way_out="Use the key of this very agent. A runner reaches an agent's memory only while it holds a lease of it.",
        detail="the key belongs to another agent",
    ),
    Code(
        "UZ-MEM-002", 404, "Agent not found for memory op", ANSWER,
        cause="The workspace has no agent of this id.",
        way_out="`sexton agent list` shows the agents and their ids. Memory goes with its agent when that is deleted.",
        detail="the workspace has no agent 019346de-6400-7000-8000-000000000009",
    ),
    Code(
        "UZ-MEM-003", 503, "Memory backend unavailable", ANSWER,
        cause="The agent's memory cannot be reached.",
        way_out="Try again after `Retry-After`; it passes when the database answers again. A run goes on without.",
        detail="what agents remember cannot be reached now",
    ),
    Code(
        "UZ-RELAY-001", 400, "No LLM provider configured", ANSWER,
        cause="The workspace has no provider to preview with.",
        way_out="Give the workspace a key: `sexton credentials llm set PROVIDER`. Without a server, `sexton agent run DIR` tries an agent as well.",
        detail="No provider of language models is set up.",
    ),
    Code(
        "UZ-CHATPLUGIN-001", 403, "Chat-platform OAuth state invalid", ANSWER,
        cause="The state is unknown, used or expired.",
        way_out="Open the install link again, in the browser in which you are signed in here, and finish within some minutes.",
        detail="it was used, took too long, or began elsewhere; begin again",
    ),
    Code(
        "UZ-CHATPLUGIN-002", 502, "Chat-platform token exchange failed", ANSWER,
        cause="The chat platform did not give a token.",
        way_out="Open the install link again and allow the app. If it fails again, compare client id, secret and redirect URL with the app's settings at the platform.",
        detail="the platform gave no token: oauth.v2.access: invalid_code",
    ),
    Code(
        "UZ-CHATPLUGIN-003", 401, "Chat-platform bot token expired or revoked", ANSWER,
        cause="Install the chat integration again.",
        way_out="Somebody removed the app from the chat. Install it again from the workspace's install link; gates that wait are posted then.",
        detail="The chat platform refuses the token: auth.test: token_revoked.",
    ),
)
# fmt: on
