"""Keeps a conversation within what the model can read: old tool results go first."""

from collections.abc import Callable, Sequence

import msgspec
import orjson

from sexton_runner.providers.base import Message, Part, Prompt, ToolAnswer
from sexton_runner.runtimes.agent.run_limits import RunLimits
from sexton_runner.runtimes.agent.shown_pictures import pictures_in

FIRST_CHARS_PER_TOKEN = 3.5
LEAST_CHARS_PER_TOKEN, MOST_CHARS_PER_TOKEN = 1.0, 8.0
SHORT_CHARS = 200
PICTURE_CHARS = 5_000
"""Some 1,500 tokens, which is what providers take for one of the largest size that they do not shrink."""
ROOM = 0.6  # When results have to go, enough go to make room for a while: each time a cache is lost.


class Measure:
    """Guesses tokens from characters, and learns from what the provider has counted."""

    def __init__(self) -> None:
        self._ratio = FIRST_CHARS_PER_TOKEN

    def learn(self, chars: int, tokens: int) -> None:
        """Take a count of the provider's; 0 tokens are none."""
        if tokens > 0:
            self._ratio = min(max(chars / tokens, LEAST_CHARS_PER_TOKEN), MOST_CHARS_PER_TOKEN)

    def tokens(self, chars: int) -> int:
        """Guess."""
        return int(chars / self._ratio) + 1


def size_of(prompt: Prompt) -> int:
    """Give the characters that the model has to read; a picture counts as many whatever its size."""
    words = msgspec.structs.replace(prompt, pictures={})
    return len(orjson.dumps(msgspec.to_builtins(words))) + PICTURE_CHARS * len(pictures_in(prompt.messages))


def short(answer: ToolAnswer) -> ToolAnswer:
    """Give a tool's answer without what it said; one that is short already stays.

    >>> short(ToolAnswer("1", "x" * 1000)).content
    '[an older result of 1000 characters was left out; call the tool again if you need it]'
    """
    if len(answer.content) <= SHORT_CHARS and not answer.pictures:
        return answer
    size = len(answer.content)
    said = f"[an older result of {size} characters was left out; call the tool again if you need it]"
    return ToolAnswer(answer.id, said, answer.ok)


def windowed(messages: Sequence[Message], keep: int) -> list[Message]:
    """Leave only the latest ``keep`` tool answers whole."""
    left = keep
    found: list[Message] = []
    for message in reversed(messages):
        parts: list[Part] = []
        for part in reversed(message.parts):
            if isinstance(part, ToolAnswer):
                left -= 1
                parts.append(part if left >= 0 else short(part))
            else:
                parts.append(part)
        found.append(Message(message.role, tuple(reversed(parts))))
    return found[::-1]


def answers_in(messages: Sequence[Message]) -> int:
    """Count the tool answers."""
    return sum(isinstance(part, ToolAnswer) for message in messages for part in message.parts)


def fitted(
    messages: Sequence[Message], limits: RunLimits, tokens_of: Callable[[Sequence[Message]], int]
) -> list[Message]:
    """Give the conversation as it may be asked.

    With a ``tool_window`` of a number the answers before it are short. With ``auto`` nothing is touched
    until the window fills; then the oldest are shortened until there is room again, the newest one never.
    """
    if isinstance(limits.tool_window, int) and limits.tool_window > 0:
        return windowed(messages, limits.tool_window)
    if tokens_of(messages) <= limits.full_at:
        return list(messages)
    keep = answers_in(messages)
    found = list(messages)
    while keep > 1 and tokens_of(found) > limits.full_at * ROOM:
        keep //= 2
        found = windowed(found, max(keep, 1))
    return found
