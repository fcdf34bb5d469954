"""Has pytest show what differs, in the cases as in a test."""

import pytest

pytest.register_assert_rewrite(
    "tests.recipes.github_cases", "tests.recipes.model_cases", "tests.recipes.service_cases"
)
