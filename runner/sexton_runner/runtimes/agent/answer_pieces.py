"""Joins the pieces of an answer that was cut at its bound, or paused by its provider."""

from collections.abc import Iterable, Sequence

import msgspec

from sexton_runner.providers.base import Message, Part, ToolUse

CUT_CALL = "the answer was cut off before the arguments of this call were whole; call again"


class AnswerPieces:
    """The answer that is being given now, from its first piece; bounded by the number of pieces."""

    def __init__(self, before: Sequence[str] = ()) -> None:
        self._texts = list(before)

    @property
    def pieces(self) -> tuple[str, ...]:
        """What was said so far, piece by piece."""
        return tuple(self._texts)

    @property
    def count(self) -> int:
        """How many pieces are there already."""
        return len(self._texts)

    @property
    def text(self) -> str:
        """What was said so far, without a seam: the model goes on where it stopped, within a word too."""
        return "".join(self._texts)

    def add(self, text: str) -> None:
        """Keep a piece that is not the last."""
        self._texts.append(text)

    def whole(self, last: str) -> str:
        """Give the answer, with its last piece; what is said next is another answer."""
        said = self.text + last
        self._texts.clear()
        return said


def joined(begun: Message, rest: Message) -> Message:
    """Make one turn of one that was paused and what came when it was sent back.

    >>> from sexton_runner.providers.base import Text
    >>> joined(Message("assistant", (Text("The heron"),)), Message("assistant", (Text(" is grey."),))).text
    'The heron is grey.'
    """
    return Message("assistant", (*begun.parts, *rest.parts))


def without_cut_call(message: Message) -> Message:
    """Mark the last tool use of a cut answer when nothing was said of its arguments.

    A call that was cut before its first argument looks like one that needs none. Carried out, it would do
    something that the model did not ask for. One that was cut later is marked already: it is no JSON.

    >>> without_cut_call(Message("assistant", (ToolUse("1", "clean"),))).tool_uses[0].fault
    'the answer was cut off before the arguments of this call were whole; call again'
    """
    match message.parts:
        case (*before, ToolUse(arguments={}, fault="") as use) if not use.arguments:
            return Message("assistant", (*before, ToolUse(use.id, use.name, {}, CUT_CALL)))
        case _:
            return message


def with_own_ids(message: Message, before: Iterable[Message]) -> Message:
    """Give each tool use an id that no other of the conversation has.

    Providers promise that. Servers that number the calls of each answer from 0 do not keep it, and by its id
    a call finds what a person has decided of it.

    >>> first = Message("assistant", (ToolUse("call_0", "pay"),))
    >>> [use.id for use in with_own_ids(Message("assistant", first.parts * 2), [first]).tool_uses]
    ['call_0_2', 'call_0_3']
    """
    taken = {use.id for one in before for use in one.tool_uses}
    parts: list[Part] = []
    for part in message.parts:
        own = part
        if isinstance(part, ToolUse):
            own = msgspec.structs.replace(part, id=_free(part.id, taken))
            taken.add(own.id)
        parts.append(own)
    return Message(message.role, tuple(parts))


def _free(wanted: str, taken: set[str]) -> str:
    number, free = 1, wanted
    while free in taken:
        number += 1
        free = f"{wanted}_{number}"
    return free
