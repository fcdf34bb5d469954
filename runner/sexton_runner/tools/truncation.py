"""Shortens what a model is given to read."""

MAX_CONTENT_CHARS = 16_384
TAIL_CHARS = 4_096
MAX_SHOWN_CHARS = 1_024
MAX_SHOWN_ITEMS = 32


def clipped(text: str, most: int = MAX_CONTENT_CHARS, tail: int = TAIL_CHARS) -> str:
    r"""Leave the middle of a long text out, and say so.

    >>> clipped("abcdefghij", most=6, tail=2)
    'abcd\n[… 4 characters left out …]\nij'
    """
    if len(text) <= most:
        return text
    left_out = len(text) - most
    return f"{text[: most - tail]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def shown(value: object, most: int = MAX_SHOWN_CHARS) -> object:
    """Cut a JSON value down to what a stream frame may show of a call's arguments.

    >>> shown({"command": "x" * 9}, most=8)
    {'command': 'xxxx…'}
    """
    match value:
        case str():
            return value if len(value) <= most else f"{value[:most]}…"
        case dict():
            return {
                shown_key(key): shown(inner, most // 2) for key, inner in [*value.items()][:MAX_SHOWN_ITEMS]
            }
        case list():
            return [shown(inner, most // 2) for inner in value[:MAX_SHOWN_ITEMS]]
        case _:
            return value


def shown_key(key: object) -> str:
    """Cut a key.

    >>> shown_key("command")
    'command'
    """
    return str(key)[:128]
