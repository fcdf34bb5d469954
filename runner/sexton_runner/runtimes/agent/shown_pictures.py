"""Decides which pictures of a conversation its next question shows, and spells the others in words."""

from collections.abc import Callable, Sequence

import msgspec

from sexton_runner.pictures import Picture, latest
from sexton_runner.providers.base import Message, Part, Text, ToolAnswer


def pictures_in(messages: Sequence[Message]) -> list[Picture]:
    """Give each picture once, in the order in which they first stand there."""
    found: dict[str, Picture] = {}
    for message in messages:
        for part in message.parts:
            for picture in _of(part):
                found.setdefault(picture.sha256, picture)
    return list(found.values())


def with_pictures(
    messages: Sequence[Message], most: int, is_here: Callable[[Picture], bool]
) -> list[Message]:
    r"""Give the conversation as it is asked: with the latest ``most`` pictures, each where it first stands.

    >>> a, b = Picture("a", "image/png", 9, "in/a.png"), Picture("b", "image/png", 9, "b.png")
    >>> said = [Message("user", (Text("Look."), a, ToolAnswer("1", "seen", pictures=(b,)), a))]
    >>> [part for part in with_pictures(said, 2, lambda _: True)[0].parts if isinstance(part, Picture)] == [a]
    True
    >>> [
    ...     part.text
    ...     for part in with_pictures(said, 1, lambda one: one is a)[0].parts
    ...     if isinstance(part, Text)
    ... ]
    ['Look.', '[the picture in/a.png is shown above]']
    >>> with_pictures(said, 1, lambda one: one is a)[0].parts[2].content
    'seen\n[the picture b.png is not shown any more]'
    """
    wanted = {one.sha256 for one in latest([one for one in pictures_in(messages) if is_here(one)], most)}
    shown: set[str] = set()

    def spelled(picture: Picture) -> Picture | Text:
        if picture.sha256 not in wanted:
            return Text(f"[the picture {picture.path} is not shown any more]")
        if picture.sha256 in shown:
            return Text(f"[the picture {picture.path} is shown above]")
        shown.add(picture.sha256)
        return picture

    return [Message(one.role, tuple(_spelled(part, spelled) for part in one.parts)) for one in messages]


def _of(part: Part) -> Sequence[Picture]:
    match part:
        case Picture():
            return (part,)
        case ToolAnswer(pictures=pictures):
            return pictures
        case _:
            return ()


def _spelled(part: Part, spell: Callable[[Picture], Picture | Text]) -> Part:
    match part:
        case Picture():
            return spell(part)
        case ToolAnswer(pictures=pictures) if pictures:
            found = [spell(one) for one in pictures]
            words = [one.text for one in found if isinstance(one, Text)]
            kept = tuple(one for one in found if isinstance(one, Picture))
            content = "\n".join([part.content, *words])
            return msgspec.structs.replace(part, content=content, pictures=kept)
        case _:
            return part
