"""The one table of codes: what can go wrong, with which status, where it shows, and what to do."""

from itertools import chain
from typing import Final

from sexton_http.error_codes import (
    agent_work,
    agents,
    credentials,
    files,
    people,
    requests,
    runs,
    start_up,
    tenants,
    webhooks,
)
from sexton_http.error_codes.code import Table

CODES: Final = Table(
    chain(
        requests.ROWS,
        people.ROWS,
        tenants.ROWS,
        webhooks.ROWS,
        agents.ROWS,
        files.ROWS,
        agent_work.ROWS,
        credentials.ROWS,
        runs.ROWS,
        start_up.ROWS,
    )
)
