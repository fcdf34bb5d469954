"""Which options of models go together, by the provider that is to take them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

ANTHROPIC: Final = "anthropic"
MOST_ANTHROPIC_TEMPERATURE: Final = 1


def option_faults(context: Mapping[str, Any], providers: Sequence[str | None]) -> Iterator[tuple[str, str]]:
    """Key and message of each option that a provider of the agent would refuse; None: it is not known here.

    Values that are no such option's at all are told by their own bounds.

    >>> list(option_faults({"temperature": 1.5}, ["anthropic"]))
    [('temperature', 'must be at most 1 for `anthropic`')]
    >>> list(option_faults({"temperature": 1.5}, [None]))
    []
    """
    temperature, thinking = _number(context, "temperature"), _number(context, "thinking_tokens")
    if temperature is not None and temperature > MOST_ANTHROPIC_TEMPERATURE and ANTHROPIC in providers:
        yield "temperature", f"must be at most {MOST_ANTHROPIC_TEMPERATURE} for `{ANTHROPIC}`"
    if thinking is None:
        return
    if all(provider not in {None, ANTHROPIC} for provider in providers):
        yield "thinking_tokens", f"is an option of `{ANTHROPIC}` alone; write `effort` for other providers"
    elif temperature is not None:
        yield "thinking_tokens", "does not go with `temperature`: leave one of them out"
    most = _number(context, "max_output_tokens")
    if most is not None and thinking >= most:
        yield "thinking_tokens", f"must be less than `max_output_tokens`, which is {most:,}"


def _number(context: Mapping[str, Any], key: str) -> float | None:
    value = context.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
