"""The options of a server's command as people are shown them: never with a secret."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from sexton_http.identity.context import ServerOption

SECRET: Final = frozenset({"metrics_token"})
"""Options of which only whether they are set is shown."""
ADDRESSES: Final = frozenset({"database_url", "otlp_endpoint"})
"""Options that may hold a user, a password or a parameter, which are not shown."""
UNSAID: Final = frozenset({"ready_file"})
"""What says nothing about the server itself."""
SOURCES: Final = {
    ParameterSource.COMMANDLINE: "option",
    ParameterSource.ENVIRONMENT: "environment",
}


def shown_options(context: click.Context) -> tuple[ServerOption, ...]:
    """All options of the command that is run, in the order of its help.

    >>> command = click.Command(
    ...     "serve", params=[click.Option(["--metrics-token"], help="What a reader sends.")]
    ... )
    >>> [one] = shown_options(command.make_context("serve", ["--metrics-token", "s3cret"]))
    >>> one.name, one.value, one.source
    ('--metrics-token', 'set', 'option')
    """
    return tuple(_shown(context, option) for option in _options(context))


def _options(context: click.Context) -> Iterable[click.Option]:
    for parameter in context.command.params:
        if isinstance(parameter, click.Option) and parameter.expose_value and parameter.name not in UNSAID:
            yield parameter


def _shown(context: click.Context, option: click.Option) -> ServerOption:
    name = option.name or ""
    source = context.get_parameter_source(name)
    variables = option.envvar
    return ServerOption(
        name="/".join(option.opts + option.secondary_opts),
        variable=(variables if isinstance(variables, str) else (variables or [""])[0]) or "",
        value=_value(name, context.params.get(name)),
        source="default" if source is None else SOURCES.get(source, "default"),
        says=option.help or "",
    )


def _value(name: str, value: Any) -> str:
    if value is None or value == ():
        return ""
    if name in SECRET:
        return "set"
    if name in ADDRESSES:
        return _without_secrets(str(value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _without_secrets(address: str) -> str:
    """An address of a database without who signs in there, and with what.

    >>> _without_secrets("postgresql://sexton:s3cret@db.example:5432/sexton?sslpassword=x")
    'postgresql://db.example:5432/sexton'
    >>> _without_secrets("host=db password=s3cret")
    'set'
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return "set"
    if not parts.scheme or not parts.netloc:
        return "set"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
