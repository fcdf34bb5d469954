"""Lets the server's previews call models in the same way as runs do."""

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from sexton_actors.providers import ProviderChoice
from sexton_http.outbound import previews
from sexton_runner.providers.base import (
    Again,
    Asking,
    Message,
    Prompt,
    Provider,
    Reply,
    Text,
    TextDelta,
    ToolCalled,
    ToolSpec,
    Used,
)
from sexton_runner.providers.faults import ModelAway, ModelFault
from sexton_runner.providers.registry import open_provider
from sexton_runner.providers.retries import Patience
from sexton_runner.redact import Redactor

MAX_OUTPUT_TOKENS = 4096
PATIENCE = Patience(tries=3, wait_first_s=0.5, wait_max_s=5.0)
"""Somebody looks at the screen meanwhile."""
REFUSED = "UZ-EXEC-012"
AWAY = "UZ-EXEC-013"


@dataclass(frozen=True, slots=True)
class ModelPreviewer:
    """``addresses`` as a runner has them: what an operator set instead of the well-known ones."""

    addresses: Mapping[str, str]
    rng: random.Random
    patience: Patience = PATIENCE

    async def preview(
        self, choice: ProviderChoice, draft: previews.Draft
    ) -> AsyncGenerator[previews.Piece, None]:
        """Ask once, as ``Previewer`` says."""
        redactor = Redactor({}, choice.api_key)
        opening = open_provider(
            choice.provider, choice.api_key, addresses=self.addresses, patience=self.patience, rng=self.rng
        )
        try:
            async with opening as provider, aclosing(_pieces(provider, choice, draft)) as pieces:
                async for piece in pieces:
                    yield piece
        except ModelFault as fault:
            code = AWAY if isinstance(fault, ModelAway) else REFUSED
            yield previews.Failed(code, redactor.text(str(fault)))


async def _pieces(
    provider: Provider, choice: ProviderChoice, draft: previews.Draft
) -> AsyncGenerator[previews.Piece, None]:
    async with aclosing(provider.stream(_prompt(choice, draft))) as deltas:
        async for delta in deltas:
            match delta:
                case TextDelta(text):
                    yield previews.TextDelta(text)
                case ToolCalled(use):
                    yield previews.ToolUse(use.id, use.name, use.arguments)
                case Reply(usage=usage):
                    tokens = previews.Tokens(
                        usage.input_tokens + usage.cache_write_tokens,
                        usage.cached_input_tokens,
                        usage.output_tokens,
                    )
                    yield previews.Done(tokens, choice.provider, choice.model)
                case Again(why=why, void=True):
                    # What was shown cannot be taken back, so it is not said a second time either.
                    raise ModelAway(why)
                case Again() | Asking() | Used():
                    pass


def _prompt(choice: ProviderChoice, draft: previews.Draft) -> Prompt:
    return Prompt(
        model=choice.model,
        messages=[Message(said.role, (Text(said.content),)) for said in draft.messages],
        system=draft.system,
        tools=[ToolSpec(tool.name, tool.description, tool.input_schema) for tool in draft.tools],
        max_output_tokens=MAX_OUTPUT_TOKENS,
    )
