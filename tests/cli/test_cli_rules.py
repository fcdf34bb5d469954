"""The small rules of the command line, for whatever a person or a server may come up with."""

import base64
import subprocess
import sys
from http import HTTPStatus

import httpx2
import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len

from sexton_cli.addresses import read_base_url
from sexton_cli.browser import find_browser
from sexton_cli.client import rows
from sexton_cli.commands.login import token_name
from sexton_cli.exits import MEANINGS, PROTOCOL, Fault
from sexton_cli.output import Column, cell, moment
from sexton_cli.problems import read_problem
from sexton_cli.tables import GAP, lay_out
from sexton_cli.tokens import Token, well_formed


@given(st.text() | st.builds("http://{}".format, st.text()) | st.builds("https://h{}".format, st.text()))
def test_an_address_is_refused_or_has_one_spelling(text: str) -> None:
    try:
        url = read_base_url(text)
    except ValueError:
        return

    assert read_base_url(url) == url
    assert url.startswith(("http://", "https://"))
    assert not url.endswith("/")
    assert url.isprintable()


@pytest.mark.parametrize("text", ["http://a b", "http://a\n", "http://a\tb", "//a", "file:///etc/passwd", ""])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        read_base_url(text)


@given(st.text())
def test_any_text_may_be_asked_for_its_claims(text: str) -> None:
    token = Token(text, "test")
    token.claims()

    assert repr(token) == "Token(source='test')"


@given(st.binary())
def test_any_middle_part_may_be_asked_for_its_claims(raw: bytes) -> None:
    claims = Token(f"a.{raw.hex()}.c", "test").claims()
    assert claims is None or claims.expires_at_ms is None


@pytest.mark.parametrize("exp", ["1e308", "-1", "253402300800", "1e18"])
def test_a_time_that_nobody_can_mean_is_left_out(exp: str) -> None:
    part = base64.urlsafe_b64encode(f'{{"exp":{exp}}}'.encode()).decode()
    claims = Token(f"a.{part}.c", "test").claims()

    assert claims is not None
    assert claims.expires_at_ms is None


@given(st.text())
def test_what_can_stand_in_a_header_is_known(text: str) -> None:
    if well_formed(text):
        request = httpx2.Request("GET", "http://x", headers={"authorization": f"Bearer {text}"})
        assert request.headers["authorization"].split() == ["Bearer", text]


@given(st.sampled_from([int(status) for status in HTTPStatus if status >= 400]), st.binary())
def test_any_bytes_may_come_with_a_failure(status: int, body: bytes) -> None:
    fault = read_problem("http://x", status, body)

    assert fault.status in MEANINGS
    assert fault.line().isprintable()


def test_whoever_gives_no_id_is_told_what_is_one() -> None:
    fault = read_problem("http://x", 400, b'{"error_code":"UZ-UUIDV7-009","detail":"event_id is not a UUID"}')

    assert "six or more characters" in fault.line()


def test_a_problem_as_deep_as_a_well_is_no_crash() -> None:
    body = b'{"error_code":"UZ-X","more":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    assert read_problem("http://x", 400, body).status in MEANINGS


@pytest.mark.parametrize("items", [None, {}, [7], [None], [{}], [{"name": 7}], [{"name": "a"}, {"nam": "b"}]])
def test_items_that_lack_what_is_relied_upon_are_a_fault(items: object) -> None:
    with pytest.raises(Fault) as fault:
        rows({"items": items}, {"name": str})
    assert fault.value.status == PROTOCOL


# --- tables -------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("name", "NAME", elastic=True),
    Column("id", "ID"),
    Column("role", "ROLE", spare=True),
    Column("made", "CREATED", spare=True),
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": st.text(),
                "id": st.uuids().map(str),
                "role": st.sampled_from(["user", "operator"]),
                "made": st.none() | st.integers(),
            }
        ),
        min_size=1,
    ),
    st.integers(1, 200),
)
def test_a_table_is_never_wider_than_the_terminal_and_never_cuts_an_id(
    items: list[dict[str, object]], width: int
) -> None:
    title, *lines = lay_out(COLUMNS, items, width)
    assert title.split()[:2] == ["NAME", "ID"]
    assert len(lines) == len(items)

    for line, item in zip(lines, items, strict=True):
        assert str(item["id"]) in line
        assert "\n" not in line
        assert "\x1b" not in line
        # A name of ten, and an id: less than that is no table.
        assert cell_len(line) <= max(width, 10 + len(GAP) + 36)


def test_a_wide_terminal_shows_everything() -> None:
    items = [{"name": "n" * 60, "id": "0193", "role": "user", "made": "today"}]
    assert lay_out(COLUMNS, items, 200)[1].split() == ["n" * 60, "0193", "user", "today"]


def test_an_empty_table_has_its_titles() -> None:
    assert lay_out(COLUMNS, [], 80) == ["NAME  ID  ROLE  CREATED"]


@given(st.text())
def test_nothing_that_is_shown_can_steer_the_terminal(text: str) -> None:
    assert cell(text).isprintable()


@given(st.none() | st.integers() | st.floats() | st.text())
def test_any_value_may_stand_for_a_time(value: object) -> None:
    shown = moment(value)
    assert shown is None or shown.endswith("Z")


# --- browsers and names -------------------------------------------------------------------------------------


def test_without_a_screen_no_browser_is_opened() -> None:
    assert find_browser({}) is None
    assert find_browser({"BROWSER": "  "}) is None
    assert find_browser({"BROWSER": "'unfinished"}) is None
    assert find_browser({"BROWSER": "lynx"}) is not None


def test_a_terminal_is_named_after_its_host_unless_somebody_says_otherwise() -> None:
    assert token_name("laptop, upstairs") == "laptop, upstairs"

    made = token_name(None)
    assert made.startswith("cli-")
    assert len(made) <= 64
    assert made.isascii()


def test_who_lists_keys_does_not_wait_for_a_server_to_be_imported() -> None:
    program = (
        "import sys, sexton_cli.main, sexton_cli.commands.keys, sexton_cli.commands.login;"
        "print([name for name in ('quart', 'trio', 'asyncpg', 'sexton_http') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == "[]\n"
