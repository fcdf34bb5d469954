"""Asks a run's model with the pictures that it may be shown, and keeps those that it draws."""

from collections.abc import Callable, Sequence

import msgspec

from sexton_runner import frames
from sexton_runner.pictures import Picture
from sexton_runner.providers.base import Message, Prompt, Reply, Text, ToolUse
from sexton_runner.providers.faults import KeyRefused, ModelRefused, WindowFull
from sexton_runner.run import Run
from sexton_runner.runtimes.agent.model_calls import ModelCalls
from sexton_runner.runtimes.agent.shown_pictures import pictures_in, with_pictures
from sexton_runner.tools.base import Found
from sexton_runner.tools.picture_shelf import PictureShelf, facts_of

MAX_REASON_CHARS = 512


class Questions:
    """The questions of one run; ``spell`` gives the prompt for messages as they are to be shown."""

    def __init__(
        self,
        run: Run,
        model_calls: ModelCalls,
        shelf: PictureShelf,
        spell: Callable[[Sequence[Message]], Prompt],
        max_pictures: int,
    ) -> None:
        self._run, self._model_calls, self._shelf = run, model_calls, shelf
        self._spell, self._max_pictures = spell, max_pictures

    def tokens(self, messages: Sequence[Message]) -> int:
        """Guess how many tokens a question would take."""
        return self._model_calls.tokens(self._prompt(messages))

    async def ask(self, messages: Sequence[Message]) -> Reply:
        """Ask; without pictures from now on if the model takes none.

        Raises ``ModelFault``, and ``SandboxUnavailable`` where a picture that it draws has no place to go.
        """
        prompt = self._prompt(messages)
        held, wanted = self._shelf.held, pictures_in(prompt.messages)
        contents = held.contents(wanted)
        if len(contents) < len(wanted):
            prompt = self._prompt(messages)  # What is not as it was is told of in words.
        try:
            reply = await self._model_calls.ask(msgspec.structs.replace(prompt, pictures=contents))
        except ModelRefused as fault:
            if not contents or isinstance(fault, WindowFull | KeyRefused):
                raise
            held.refused = self._run.redactor.text(str(fault))[:MAX_REASON_CHARS]
            told = f"the model is asked without pictures from now on: {held.refused}"
            self._run.record("note", {"text": told})
            self._run.show(frames.chunk(f"\n[{told}]\n"))
            reply = await self._model_calls.ask(self._prompt(messages))
        return await self._shelved(reply)

    def _prompt(self, messages: Sequence[Message]) -> Prompt:
        return self._spell(with_pictures(messages, self._max_pictures, self._shelf.held.is_here))

    async def _shelved(self, reply: Reply) -> Reply:
        """Keep what the model has drawn among the files of the run; its answer says where."""
        if not reply.pictures:
            return reply
        lines = [""] if reply.message.text else []
        for content in reply.pictures:
            kept = await self._shelf.keep(Found(content))
            lines.append(f"[picture: {kept}]")
            facts = {"pictures": [facts_of(kept)]} if isinstance(kept, Picture) else {}
            self._run.record("note", {"text": f"the model has drawn a picture: {kept}", **facts})
        words = Text("\n".join(lines))
        self._run.show(frames.chunk(f"{words.text}\n"))
        parts, uses = reply.message.parts, reply.message.tool_uses
        said = (*(part for part in parts if not isinstance(part, ToolUse)), words, *uses)
        return msgspec.structs.replace(reply, message=Message("assistant", said), pictures=())
