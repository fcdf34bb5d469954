"""What the doctor makes of servers that are not well."""

from contextlib import nullcontext
from email.utils import formatdate
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from sexton_cli import doctor_checks
from sexton_cli.caller import Caller, Given
from sexton_cli.client import Client
from sexton_cli.connection import HttpConnection
from sexton_cli.credentials import Kept
from sexton_cli.doctor_checks import Check, State, verdict

BASE = "http://sexton.test"
NOW = 1_732_060_800.0


def client(status: int, body: Any, **headers: str) -> Client:
    """Of a server that answers everything the same."""
    answer = httpx2.Response(status, json=body, headers=headers)
    http = httpx2.Client(transport=httpx2.MockTransport(lambda _: answer))
    return Client(HttpConnection(http, BASE), BASE, None, sleep=lambda _: None)


def caller() -> Caller:
    return Caller(Given(base_url=BASE), {}, None)


@pytest.mark.parametrize(("servers", "words"), [(0, "no server"), (1, "1 server"), (2, "2 servers")])
def test_it_is_said_how_many_servers_are_known_here(tmp_path: Path, servers: int, words: str) -> None:
    here = Caller(Given(base_url=BASE), {"XDG_CONFIG_HOME": str(tmp_path)}, None)
    known = {f"{BASE}:{n}": Kept(token="t") for n in range(servers)}
    here.file.change(lambda kept: replace(kept, servers=known))

    assert doctor_checks._credentials(here).detail == f"{here.file.path} knows {words}"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"is_unlimited": True}, "$5.00; work does not stop at zero"),
        ({"is_unlimited": False}, "$5.00; work stops at zero"),
        ({"is_exhausted": True}, "$5.00: events are kept, and wait for credit"),
    ],
)
def test_it_is_said_what_becomes_of_work_at_zero(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, bool], words: str
) -> None:
    answers = client(200, {"balance_nanos": 5_000_000_000, **told})
    monkeypatch.setattr(Caller, "client", lambda _: nullcontext(answers))

    assert doctor_checks._balance(caller()).detail == words


@pytest.mark.parametrize("skew", [0, 20, -20, 29])
def test_a_clock_that_is_a_little_off_is_well(skew: int) -> None:
    check = doctor_checks._clock(client(200, {}, date=formatdate(NOW + skew, usegmt=True)), lambda: NOW)
    assert check.state is State.OK


@pytest.mark.parametrize("skew", [32, -32, 3600, -86_400])
def test_a_clock_that_is_far_off_fails_with_the_way_out(skew: int) -> None:
    check = doctor_checks._clock(client(200, {}, date=formatdate(NOW + skew, usegmt=True)), lambda: NOW)

    assert (check.state, check.status) == (State.FAIL, 78)
    assert f"{skew:+}" in check.detail or f"{skew + 1:+}" in check.detail
    assert check.way_out


def test_a_server_that_does_not_tell_the_time_is_not_judged_by_it() -> None:
    assert doctor_checks._clock(client(200, {}), lambda: NOW).state is State.SKIP
    assert doctor_checks._clock(client(200, {}, date="yesterday"), lambda: NOW).state is State.SKIP


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"ready": False, "database": False, "checks": {}}, "database does not answer"),
        ({"ready": False, "database": True, "checks": {"accepting": False}}, "stopping"),
    ],
)
def test_a_server_that_is_not_ready_says_why(body: dict[str, Any], words: str) -> None:
    check = doctor_checks._ready(client(503, body))

    assert (check.state, check.status) == (State.FAIL, 69)
    assert words in check.detail
    assert check.way_out


def test_a_server_of_another_version_is_a_warning() -> None:
    same = {"status": "ok", "service": "sexton", "version": version("sexton")}
    assert doctor_checks._healthy(caller(), client(200, same)).state is State.OK

    check = doctor_checks._healthy(caller(), client(200, {**same, "version": "0.0.9"}))
    assert check.state is State.WARN
    assert "0.0.9" in check.detail


@pytest.mark.parametrize("body", [{}, {"service": "another"}, [], "text"])
def test_another_service_is_known_for_one(body: Any) -> None:
    check = doctor_checks._guarded("server", lambda: doctor_checks._healthy(caller(), client(200, body)))
    assert (check.state, check.status) == (State.FAIL, 76)


def test_an_address_in_the_open_is_a_warning() -> None:
    assert doctor_checks._address(caller()).state is State.WARN
    assert doctor_checks._address(Caller(Given(base_url="https://sexton.test"), {}, None)).state is State.OK
    assert doctor_checks._address(Caller(Given(base_url="http://localhost:1"), {}, None)).state is State.OK


def test_the_verdict_is_that_of_the_first_that_failed() -> None:
    well, warned = Check("a", State.OK, ""), Check("b", State.WARN, "")
    first, second = Check("c", State.FAIL, "", None, 69), Check("d", State.FAIL, "", None, 77)

    assert verdict([well, warned]) == 0
    assert verdict([well, first, warned, second]) == 69
    assert verdict([Check("e", State.FAIL, "")]) == 1
