"""Turns of question and answer until the model is done, its window is full, or a bound is reached."""

from collections.abc import Sequence
from typing import Any, assert_never

import structlog
import trio

from sexton_runner.errors import ControlPlaneError, TokenRejected
from sexton_runner.lease import Halt
from sexton_runner.pictures import Picture
from sexton_runner.providers.base import (
    Message,
    Part,
    Prompt,
    Reply,
    Stop,
    Text,
    ToolAnswer,
    ToolSpec,
)
from sexton_runner.providers.faults import ModelRefused, ModelsBusy, WindowFull
from sexton_runner.run import Ending, Outcome, Run
from sexton_runner.runtimes.agent.answer_pieces import (
    AnswerPieces,
    joined,
    with_own_ids,
    without_cut_call,
)
from sexton_runner.runtimes.agent.evidence import Evidence
from sexton_runner.runtimes.agent.model_calls import ModelCalls
from sexton_runner.runtimes.agent.prompt import first_message, system_prompt
from sexton_runner.runtimes.agent.questions import Questions
from sexton_runner.runtimes.agent.run_limits import RunLimits
from sexton_runner.runtimes.agent.saved_conversation import SavedConversation, decode, encode
from sexton_runner.runtimes.agent.tool_calls import ToolCalls
from sexton_runner.runtimes.agent.window import fitted, windowed
from sexton_runner.tools.picture_shelf import facts_of
from sexton_runner.tools.toolbox import Toolbox
from sexton_runner.tools.truncation import clipped

MAX_RESPONSE_CHARS = 256_000
MAX_NOTE_CHARS = 32_000
MAX_REASON_CHARS = 512
log = structlog.get_logger()
MEMORY_TOOL = "memory_store"
GO_ON = "Your answer was cut off at its bound. Go on exactly where it stopped."
BEGUN = "What you had answered when there was no more room; nobody has seen it, so answer in full again:\n"
NOTE = (
    "You have nearly used up what you can read at once. Do not call a tool now. Write a note to yourself, "
    "from which you will go on with this event in a fresh conversation that shows nothing of this one: what "
    "the task is, what you have done and found so far with all names and numbers that matter, and what is "
    "left to do."
)
REMEMBER = (
    "You have made {count} tool calls. If something you learnt matters for later events, keep it with "
    "memory_store now; then go on."
)


class Loop:
    """One run's conversation."""

    def __init__(self, run: Run, model_calls: ModelCalls, toolbox: Toolbox, limits: RunLimits) -> None:
        lease = run.live.lease
        self._run, self._model_calls, self._toolbox, self._limits = run, model_calls, toolbox, limits
        self._saved = decode(lease.checkpoint)
        self._evidence = Evidence()
        self._tool_calls = ToolCalls(run, toolbox, self._evidence, self.checkpoint)
        self._system = system_prompt(lease.instructions)
        self._tools = tuple(
            ToolSpec(tool.name, tool.description, tool.input_schema) for tool in toolbox.tools.values()
        )
        shelf, most = toolbox.pictures, limits.max_pictures
        self._questions = Questions(run, model_calls, shelf, self._prompt, most)
        brought = shelf.held.of_event[:most]
        first = first_message(lease, limits.context_cap_tokens, self._saved.note, brought)
        self._messages = list(self._saved.messages) or [first]
        self._pieces = AnswerPieces(self._saved.pieces)
        self._reminded = 0
        run.live.account = self.evidence

    async def carry_out(self) -> Ending:
        """Go on until there is an ending. Raises ``ModelFault``, ``SandboxUnavailable`` and ``TooLarge``."""
        self._record_beginning()
        await self._finish_turn()
        for _ in range(self._limits.max_turns):
            reply = await self._ask()
            if reply is None:
                return await self._hand_over()
            self._take(reply)
            ending = await self._act(reply)
            if ending is not None:
                return ending
        return self._unfinished(f"the run was not done after {self._limits.max_turns} turns")

    def _record_beginning(self) -> None:
        if self._saved.messages:
            self._run.record("note", {"text": "the conversation of the attempt before goes on"})
            return
        self._run.record("prompt", {"text": self._system, "role": "system"})
        shown = [facts_of(part) for part in self._messages[0].parts if isinstance(part, Picture)]
        told = {"text": self._messages[0].text, "role": "user"}
        self._run.record("prompt", {**told, "pictures": shown} if shown else told)

    def checkpoint(self, answered: Sequence[ToolAnswer] = ()) -> dict[str, object]:
        """Give all that a later lease needs to go on from here. Raises ``TooLarge``."""
        saved = SavedConversation(
            stage=self._saved.stage,
            note=self._saved.note,
            calls=self._saved.calls + self._evidence.count,
            messages=tuple(self._messages),
            answered=tuple(answered),
            pieces=self._pieces.pieces,
        )
        return {**self._toolbox.checkpoint(), **self._run.redactor.json(encode(saved))}

    async def _finish_turn(self) -> None:
        """Carry out what was asked for before the run was parked."""
        last = self._messages[-1]
        if last.role == "assistant":
            answers = await self._tool_calls.carry_out(last.tool_uses, self._saved.answered)
            self._answer(answers or (Text("Go on."),))

    async def _ask(self) -> Reply | None:
        """Ask the next question; None when there is no room for it."""
        fits = fitted(self._messages, self._limits, self._questions.tokens)
        if self._questions.tokens(fits) > self._limits.full_at and len(self._messages) > 1:
            return None
        try:
            return await self._questions.ask(fits)
        except WindowFull:
            # The model's own window is smaller than it was said to be.
            if len(self._messages) == 1:
                raise
            return None

    def _take(self, reply: Reply) -> None:
        """Keep what was answered; what follows an assistant's turn belongs to that turn."""
        message = without_cut_call(reply.message) if reply.stop is Stop.LENGTH else reply.message
        message = with_own_ids(message, self._messages)
        if self._messages[-1].role == "assistant":
            self._messages[-1] = joined(self._messages[-1], message)
        else:
            self._messages.append(message)

    async def _act(self, reply: Reply) -> Ending | None:
        """Do what the answer asks for; an ending when it was the last."""
        uses = self._messages[-1].tool_uses
        if uses:
            self._pieces.whole("")  # Words on the way to a tool are not the answer.
            answers = await self._tool_calls.carry_out(uses)
            self._answer((*answers, *self._reminder()))
            return None
        match reply.stop:
            case Stop.END | Stop.TOOLS:
                return await self._done(self._pieces.whole(reply.message.text))
            case Stop.LENGTH | Stop.PAUSED:
                return self._go_on(reply)
            case Stop.WINDOW:
                self._pieces.add(reply.message.text)
                self._messages.pop()
                return await self._hand_over()
            case Stop.REFUSED:
                said = self._pieces.whole(reply.message.text)
                return self._failed("agent_run", f"the model refused: {said}".rstrip(": "))
            case _:
                assert_never(reply.stop)

    def _go_on(self, reply: Reply) -> Ending | None:
        """Ask for the rest of an answer, as its provider's protocol wants it to be asked for."""
        self._pieces.add(reply.message.text)
        if self._pieces.count > self._limits.max_continuations:
            return self._unfinished(
                f"the answer was not whole after {self._limits.max_continuations} continuations; "
                "raise max_output_tokens or max_continuations in the agent's context"
            )
        if reply.stop is Stop.LENGTH:
            self._answer((Text(GO_ON),))
        # A paused turn is sent back as it is, as the last of the conversation: nobody said anything.
        return None

    def _unfinished(self, why: str) -> Ending:
        """End a run that used up a bound, with what it had answered until then."""
        said = self._pieces.whole("")
        return self._failed("agent_run", f"{self._said(said)}\n\n{why}".strip())

    async def _done(self, text: str) -> Ending | None:
        unmet = await self._toolbox.check()
        if unmet is None:
            return self._ending(Outcome.PROCESSED, self._said(text))
        if unmet.failure_reason is not None:
            return self._failed(unmet.failure_reason, f"{self._said(text)}\n\n{unmet.text}".strip())
        self._answer((Text(f"{unmet.text}\n\nRepair this, and answer again when you are done."),))
        return None

    async def _hand_over(self) -> Ending:
        """End this event with a note, from which another goes on."""
        if self._saved.stage >= self._limits.max_stages:
            return self._unfinished(f"the run was not done after {self._limits.max_stages} windows")
        begun = self._pieces.whole("")
        own = f"{await self._note()}\n\n{BEGUN}{begun}" if begun else await self._note()
        note = clipped(self._said(own), MAX_NOTE_CHARS)
        saved = SavedConversation(
            stage=self._saved.stage + 1, note=note, calls=self._saved.calls + self._evidence.count
        )
        checkpoint = {**self._toolbox.checkpoint(), **encode(saved)}
        return self._ending(Outcome.PROCESSED, note, checkpoint)

    async def _note(self) -> str:
        """Let the model write its note, over as much of the conversation as it can read."""
        keep = 8
        while True:
            messages = windowed(self._messages, keep)
            asked = Message("user", (*_parts_of_last_user(messages), Text(NOTE)))
            before = messages[:-1] if messages[-1].role == "user" else messages
            try:
                said = (await self._questions.ask([*before, asked])).message.text
            except WindowFull as fault:
                if keep == 0:
                    raise ModelRefused(f"not even a note has room: {fault}") from fault
                keep //= 2
            else:
                return said if said.strip() else self._own_words()

    def _own_words(self) -> str:
        """What the model said on its way, for one that writes no note."""
        said = [message.text for message in self._messages if message.role == "assistant"]
        return "\n".join(text for text in said if text) or "Nothing was noted; start from the beginning."

    def _prompt(self, messages: Sequence[Message]) -> Prompt:
        model = self._run.live.lease.policy.model or ""
        limits = self._limits
        return Prompt(
            model,
            messages,
            self._system,
            self._tools,
            limits.max_output_tokens,
            limits.temperature,
            limits.effort,
            limits.thinking_tokens,
        )

    def _answer(self, parts: tuple[Part, ...]) -> None:
        self._messages.append(Message("user", parts))
        for part in parts:
            if isinstance(part, Text):
                self._run.record("prompt", {"text": part.text, "role": "user"})

    def _reminder(self) -> tuple[Text, ...]:
        every, count = self._limits.memory_checkpoint_every, self._evidence.count
        if not every or MEMORY_TOOL not in self._toolbox.tools or count // every == self._reminded:
            return ()
        self._reminded = count // every
        return (Text(REMEMBER.format(count=count)),)

    def _said(self, text: str) -> str:
        return clipped(self._run.redactor.text(text), MAX_RESPONSE_CHARS)

    def _failed(self, reason: str, text: str) -> Ending:
        return self._ending(Outcome.AGENT_ERROR, self._said(text), reason=reason)

    def _ending(
        self,
        outcome: Outcome,
        text: str,
        checkpoint: dict[str, Any] | None = None,
        reason: str | None = None,
    ) -> Ending:
        return Ending(
            outcome=outcome,
            failure_reason=reason,
            response_text=text,
            evidence=self.evidence(),
            first_output_ms=self._model_calls.first_output_ms,
            checkpoint=checkpoint,
            proposals=tuple(self._toolbox.proposals),
        )

    def evidence(self) -> dict[str, Any]:
        """Say what was done, so far."""
        policy = self._run.live.lease.policy
        about: dict[str, Any] = {
            "provider": policy.provider,
            "model": policy.model,
            "questions": self._model_calls.questions,
            "stage": self._saved.stage,
            **({"tokens_guessed": True} if self._model_calls.guessed else {}),
        }
        if policy.fallbacks:
            about["models"] = self._models()
        return self._evidence.told(about)

    def _models(self) -> list[dict[str, Any]]:
        """Say which model gave how many answers, of a run that has several."""
        policy = self._run.live.lease.policy
        named = [(policy.provider, policy.model), *((one.provider, one.model) for one in policy.fallbacks)]
        answered = self._model_calls.answered
        return [
            {"provider": provider, "model": model, "questions": answered.get(place, 0)}
            for place, (provider, model) in enumerate(named)
        ]

    async def give_back(self, fault: ModelsBusy) -> Ending:
        """Let the event wait until a model may answer; an ending only where it cannot be given back.

        Raises ``TooLarge``.
        """
        live = self._run.live
        why = self._run.redactor.text(str(fault))[:MAX_REASON_CHARS]
        body: dict[str, object] = {
            "reason": why,
            "retry_after_ms": int(fault.retry_after_s * 1000),
            "usage": live.renewal(),
        }
        if len(self._messages) > 1:
            body["checkpoint"] = self.checkpoint()
        with trio.move_on_after(self._run.timing.flush_patience_s):
            await self._run.shown()  # Afterwards the lease takes no frames any more.
        try:
            await self._run.plane.give_back(live.lease.lease_id, body)
        except TokenRejected:
            raise
        except ControlPlaneError as refusal:
            # An outage, or a lease that is lost: then the next call says so.
            log.info("not_given_back", lease_id=live.lease.lease_id, why=str(refusal))
            return self.broken("agent_run", f"the model did not answer: {why}")
        live.halt(Halt.GIVEN_BACK, why)
        await trio.sleep_forever()  # The halt has cancelled the scope that this runs in.
        raise AssertionError("the scope was cancelled")

    def broken(self, reason: str, text: str) -> Ending:
        """Give the ending of a run that a fault has ended, with what it had done until then."""
        return self._failed(reason, text)


def _parts_of_last_user(messages: Sequence[Message]) -> tuple[Part, ...]:
    last = messages[-1]
    return last.parts if last.role == "user" else ()
