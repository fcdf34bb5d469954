"""Whatever comes in place of a key, a code, a cookie, a state or a claim: a code comes out, never a fault."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st

from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.sealed_token import (
    check_ciphertext,
    check_code,
    check_nonce,
    check_public_key,
    check_token_name,
)
from sexton_http.identity.auth_keys import AuthKeys
from sexton_http.identity.browsers import read_cookie
from sexton_http.identity.issuers.builtin import read_claims
from sexton_http.identity.issuers.jwks import read_keys
from sexton_http.identity.same_origin import is_same_origin
from tests.fakes.login_terminal import Party, raw, text
from tests.thorough import examples

KEYS = AuthKeys(b"s" * 32, lambda size: "00" * size)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
B64 = st.text(alphabet="ABCDEFabcdef0123456789-_=", max_size=200)
SPKI = raw(Party().public_key)
CODES = {
    check_public_key: "UZ-AUTH-016",
    check_token_name: "UZ-AUTH-017",
    check_code: "UZ-AUTH-018",
    check_ciphertext: "UZ-AUTH-019",
    check_nonce: "UZ-AUTH-020",
}


def refusal_of(check: Callable[[str], str], sent: str) -> str | None:
    """The code, or nothing for what is taken as it is."""
    try:
        taken = check(sent)
    except Problem as problem:
        return problem.code
    assert taken == sent
    return None


@pytest.mark.parametrize(("check", "code"), CODES.items(), ids=CODES.values())
@given(sent=st.text(max_size=200) | B64)
def test_a_field_is_taken_as_it_is_or_refused_with_its_code(
    check: Callable[[str], str], code: str, sent: str
) -> None:
    assert refusal_of(check, sent) in {None, code}


@given(place=st.integers(0, len(SPKI) - 1), value=st.integers(0, 255), cut=st.integers(0, 8))
def test_a_damaged_key_is_refused_or_still_a_key(place: int, value: int, cut: int) -> None:
    damaged = bytearray(SPKI[: len(SPKI) - cut])
    if place < len(damaged):
        damaged[place] = value
    code = refusal_of(check_public_key, text(bytes(damaged)))

    assert code == "UZ-AUTH-016" or (code is None and damaged[26] == 4)


@given(payload=st.binary(max_size=64), place=st.integers(min_value=0), other=st.sampled_from("AB-_z0"))
def test_what_was_signed_is_known_and_nothing_else_is(payload: bytes, place: int, other: str) -> None:
    signed = KEYS.sign(payload)
    assert KEYS.check(signed) == payload

    place %= len(signed)
    changed = signed[:place] + other + signed[place + 1 :]
    assert KEYS.check(changed) == (payload if changed == signed else None)
    assert KEYS.check(signed + "=") is None


@given(sent=st.text())
def test_no_text_is_taken_for_a_signature(sent: str) -> None:
    assert KEYS.check(sent) is None


@given(token=st.text(alphabet=st.characters(codec="utf-8")), identity=st.binary(max_size=16))
def test_what_is_sealed_opens_in_its_place_only(token: str, identity: bytes) -> None:
    sealed = KEYS.seal(token, identity)
    assert KEYS.open(sealed, identity) == token

    for damaged, place in ((sealed, identity + b"x"), (sealed[:-1], identity), (b"", identity)):
        with pytest.raises(ValueError, match="not sealed"):
            KEYS.open(damaged, place)


def test_a_code_is_bound_to_its_session() -> None:
    one, other = UUID(int=1), UUID(int=2)

    assert KEYS.code_mac(one, "123456") != KEYS.code_mac(other, "123456")
    assert KEYS.code_mac(one, "123456") != KEYS.client_mac(one, "123456")


@given(document=st.dictionaries(st.sampled_from(["keys", "x"]), JSON) | st.fixed_dictionaries({"keys": JSON}))
def test_no_key_set_is_too_strange_to_be_read(document: dict[str, Any]) -> None:
    assert read_keys(document) == {}


ROW = st.fixed_dictionaries(
    {"kty": st.sampled_from(["RSA", "EC", "OKP", "oct", 1, None])},
    optional={
        "crv": st.sampled_from(["P-256", "P-384", "Ed25519", "Ed448", "X25519", 7]),
        "alg": st.sampled_from(["RS256", "none", 5]),
        **dict.fromkeys(("n", "e", "x", "y", "kid", "use"), B64 | JSON),
    },
)


@settings(max_examples=examples(300))
@given(rows=st.lists(ROW, max_size=4))
def test_a_key_that_cannot_be_used_is_passed_over(rows: list[dict[str, Any]]) -> None:
    for key in read_keys({"keys": rows}).values():
        assert key.algorithm in {"RS256", "ES256", "EdDSA"}


CLAIM_NAMES = ("iss", "sub", "exp", "tenant_id", "role", "workspace_id", "platform_admin", "nbf")


@given(claims=st.fixed_dictionaries({}, optional=dict.fromkeys(CLAIM_NAMES, JSON)))
def test_strange_claims_are_no_claims(claims: dict[str, Any]) -> None:
    with pytest.raises(Problem) as caught:
        read_claims(claims, 0.0)
    assert caught.value.code in {"UZ-AUTH-002", "UZ-AUTH-003"}


@given(sent=st.binary(max_size=200))
def test_any_cookie_header_can_be_read(sent: bytes) -> None:
    value = read_cookie(RequestHead("GET", "/", b"", {b"cookie": sent}, ""), "sexton")
    assert value is None or f"sexton={value}" in sent.decode("latin-1")


@given(origin=st.binary(max_size=60), host=st.binary(max_size=30))
def test_any_origin_can_be_judged(origin: bytes, host: bytes) -> None:
    head = RequestHead("POST", "/", b"", {b"origin": origin, b"host": host}, "")
    if is_same_origin(head, "https://sexton.example.com"):
        assert host.lower() in origin.lower() or b"sexton.example.com" in origin.lower()
