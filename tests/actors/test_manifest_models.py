"""The models of an agent and their options, as an author writes them, and what is refused where."""

import pytest

from sexton_actors.manifest.model import Manifest, ModelWish, from_json, to_json
from sexton_actors.manifest.parse import ManifestRejected, parse
from tests.worlds.samples import agent_files

ORDERS = [
    ("models: [a, b]", ("a", None), (ModelWish("b"),)),
    ("models: [a, b, a]\nmodel: c\nprovider: openai", ("c", "openai"), ("a", "b")),
    ("models: [{model: a, provider: groq}, b]", ("a", "groq"), (ModelWish("b"),)),
    ("model: a", ("a", None), ()),
    ("models: []\nprovider: openai", (None, "openai"), ()),
]
WRONG = [
    ("models: a", "models", "must be a list"),
    ("models: [a, b, c, d, e, f, g, h, i]", "models", "0 to 8 entries, has 9"),
    ("models: [{provider: groq}]", "models[0].model", "is missing"),
    ("models: [{model: a, cost: 1}]", "models[0].cost", "unknown key"),
    ("models: [[a]]", "models[0]", "must be a name, or"),
    ("models: ['a b']", "models[0]", "does not fit"),
    ("context: {temperature: 2.1}", "context.temperature", "a number from 0 to 2"),
    ("context: {effort: huge}", "context.effort", "`low` or `medium` or `high`"),
    ("context: {effort: 3}", "context.effort", "`low` or `medium`"),
    ("context: {thinking_tokens: 5}", "context.thinking_tokens", "from 1,024 to 200,000"),
    ("provider: anthropic, context: {temperature: 1.5}", "context.temperature", "at most 1 for `anthropic`"),
    ("provider: openai, context: {thinking_tokens: 2048}", "context.thinking_tokens", "write `effort`"),
    (
        "context: {thinking_tokens: 2048, temperature: 0.5}",
        "context.thinking_tokens",
        "does not go with `temperature`",
    ),
    (
        "context: {thinking_tokens: 2048, max_output_tokens: 2048}",
        "context.thinking_tokens",
        "less than `max_output_tokens`, which is 2,048",
    ),
    (
        "models: [a, {model: b, provider: anthropic}], context: {temperature: 1.5}",
        "context.temperature",
        "at most 1 for `anthropic`",
    ),
]


def read(config: str) -> Manifest | ManifestRejected:
    files = agent_files("doctor", config)
    return parse(files["source_markdown"], files["trigger_markdown"])


@pytest.mark.parametrize(("config", "first", "others"), ORDERS, ids=[row[0] for row in ORDERS])
def test_models_are_asked_in_the_order_in_which_they_stand(
    config: str, first: tuple[str | None, str | None], others: tuple[ModelWish | str, ...]
) -> None:
    manifest = read(config)
    assert isinstance(manifest, Manifest)

    wishes = tuple(ModelWish(one, first[1]) if isinstance(one, str) else one for one in others)
    assert ((manifest.model, manifest.provider), manifest.fallbacks) == (first, wishes)
    assert from_json(to_json(manifest)) == manifest


@pytest.mark.parametrize(("config", "key", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_what_no_model_could_use_is_refused_by_line_key_and_bound(config: str, key: str, said: str) -> None:
    lines = config.replace(", context:", "\ncontext:")
    rejected = read(lines)
    assert isinstance(rejected, ManifestRejected)

    (problem,) = rejected.errors
    text = agent_files("doctor", lines)["trigger_markdown"].split("\n")
    at = text.index(lines.split("\n")[-1]) + 1
    assert (problem.file, problem.line, problem.key) == ("TRIGGER.md", at, key)
    assert said in problem.message
