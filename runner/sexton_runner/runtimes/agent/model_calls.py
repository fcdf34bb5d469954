"""Asks the model, streams its answer, and counts what that costs."""

from contextlib import aclosing
from typing import Any, assert_never

from sexton_runner import frames
from sexton_runner.providers.base import (
    Again,
    Asking,
    Prompt,
    Provider,
    Reply,
    Stop,
    TextDelta,
    ToolCalled,
    Usage,
    Used,
)
from sexton_runner.providers.faults import ModelAway
from sexton_runner.redact import StreamRedactor
from sexton_runner.run import Run
from sexton_runner.runtimes.agent.window import Measure, size_of


class ModelCalls:
    """The questions of one run. The lease's counters follow every count of the provider's."""

    def __init__(self, run: Run, provider: Provider) -> None:
        self._run, self._provider = run, provider
        self._began = run.clock()
        policy = run.live.lease.policy
        self._providers = [policy.provider or "", *(one.provider for one in policy.fallbacks)]
        self.names = [policy.model or "", *(one.model for one in policy.fallbacks)]
        self._place = 0
        self._spent = [Usage()] * len(self.names)
        """By the model's place in the chain: what its finished tries have used."""
        self._try = Usage()
        self._measure = Measure()
        self.questions = 0
        self.answered: dict[int, int] = {}
        """Whole answers, by the model's place."""
        self.guessed = False
        self.first_output_ms: int | None = None

    async def ask(self, prompt: Prompt) -> Reply:
        """Ask once and wait for the whole answer; raises ``ModelFault``."""
        voice = StreamRedactor(self._run.redactor)
        reply: Reply | None = None
        self._try = Usage()
        asked = self._run.clock()
        async with aclosing(self._provider.stream(prompt)) as deltas:
            async for delta in deltas:
                match delta:
                    case TextDelta(text):
                        self._first()
                        self._show(voice.feed(text))
                    case ToolCalled():
                        self._first()
                    case Used(usage):
                        self._count(usage)
                    case Asking(place):
                        self._place = place
                    case Again():
                        voice = self._again(delta)
                    case Reply():
                        reply = delta
                    case _:
                        assert_never(delta)
        self._show(voice.flush())
        if reply is None:
            raise ModelAway("the answer ended without its end")
        # What comes next goes on within the same line, perhaps within a word.
        goes_on = reply.stop in {Stop.LENGTH, Stop.PAUSED} and not reply.message.tool_uses
        if reply.message.text and not goes_on:
            self._show("\n")
        self._learn(prompt, reply)
        self.questions += 1
        self.answered[self._place] = self.answered.get(self._place, 0) + 1
        self._record(reply, asked)
        return reply

    def tokens(self, prompt: Prompt) -> int:
        """Guess how many tokens a question would take."""
        return self._measure.tokens(size_of(prompt))

    def _record(self, reply: Reply, asked: float) -> None:
        message, usage = reply.message, reply.usage
        facts: dict[str, Any] = {
            "model": self.names[self._place],
            "provider": self._providers[self._place],
            "ms": int((self._run.clock() - asked) * 1000),
            "text": message.text,
            "tool_calls": [{"id": use.id, "name": use.name} for use in message.tool_uses],
            "stop": reply.stop.value,
            "input_tokens": usage.input_tokens,
            "cached_input_tokens": usage.cached_input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "output_tokens": usage.output_tokens,
        }
        self._run.record("model", facts)

    def _first(self) -> None:
        if self.first_output_ms is None:
            self.first_output_ms = int((self._run.clock() - self._began) * 1000)

    def _show(self, text: str) -> None:
        if text:
            self._run.show(frames.chunk(text))

    def _again(self, again: Again) -> StreamRedactor:
        # What the broken try has cost is gone all the same.
        self._spend(self._try)
        lead = "\n[the answer broke off" if again.void else "[no answer"
        then = f"the model {again.model} is asked" if again.model else "the model is asked again"
        self._run.record("note", {"text": f"{then}: {again.why}"})
        self._show(f"{lead}: {self._run.redactor.text(again.why)}; {then}]\n")
        return StreamRedactor(self._run.redactor)

    def _count(self, usage: Usage) -> None:
        self._try = usage
        used = list(self._spent)
        used[self._place] += usage
        self._run.live.usage.count(sum(used, Usage()), used[1:])

    def _spend(self, usage: Usage) -> None:
        self._spent[self._place] += usage
        self._try = Usage()

    def _learn(self, prompt: Prompt, reply: Reply) -> None:
        chars = size_of(prompt)
        usage = reply.usage
        if usage.total == 0:
            # A server that does not count: a guess is nearer to the truth than nothing.
            said = len(reply.message.text) + sum(len(str(use.arguments)) for use in reply.message.tool_uses)
            usage = Usage(self._measure.tokens(chars), 0, self._measure.tokens(said))
            self.guessed = True
        else:
            self._measure.learn(chars, usage.read)
        self._count(usage)
        self._spend(usage)
