"""The variables of the environment that say what options say."""

from typing import Final

BASE_URL_VARIABLE: Final = "SEXTON_BASE_URL"
TOKEN_VARIABLE: Final = "SEXTON_TOKEN"  # noqa: S105 - the name of a variable
WORKSPACE_VARIABLE: Final = "SEXTON_WORKSPACE"
