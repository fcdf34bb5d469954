"""Every sender that is known by its label."""

from sexton_actors.webhooks.source import Source
from sexton_actors.webhooks.sources import generic, github, linear, slack, standard_webhooks

NATIVE = {
    "github": github.SOURCE,
    "slack": slack.SOURCE,
    "linear": linear.SOURCE,
    "svix": standard_webhooks.SVIX,
    "standard-webhooks": standard_webhooks.STANDARD,
}


def source_of(label: str) -> Source:
    return NATIVE.get(label, generic.SOURCE)
