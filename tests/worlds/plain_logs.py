"""Logs of tests, in plain text."""

import structlog


def log_plainly() -> None:
    """Write tracebacks as Python does, not with the variables of every frame, which takes seconds."""
    rest, renderer = structlog.get_config()["processors"][:-1], structlog.dev.ConsoleRenderer
    structlog.configure(
        processors=[*rest, renderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    )
