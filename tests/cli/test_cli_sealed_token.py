"""What is handed over opens for its receiver, and for nobody else."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import load_der_public_key
from hypothesis import given, strategies as st

from sexton_cli.sealed_token import NotForUs, TokenReceiver, derive
from tests.fakes.login_browser import SPKI, sealed_for, unpacked, unpadded

TOKEN = "eyJhbGciOiJFZERTQSJ9.e30.c2ln"

# RFC 5903's first party (section 8.1) and RFC 5869's function, put together by hand: an implementation in
# another language arrives at the same bytes.
PRIVATE = 0xC88F01F510D9AC3F70A292DAA2316DE544E9AAB8AFE84049C62A9C57862D1433
THEIRS = 0xC6EF9C5D78AE012A011164ACB397CE2088685D8F06BF9BE0B283AB46476BEE53
AGREED = "d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"
DERIVED = "8017b94c6adb03363188228eeaf922063d26161543a881b4a37dd4ce18981f23"


def test_what_was_sealed_for_a_terminal_opens_there() -> None:
    terminal = TokenReceiver()
    assert terminal.open(**sealed_for(terminal.public_key, TOKEN)) == TOKEN


def test_the_key_agreement_is_that_of_the_published_example() -> None:
    private = ec.derive_private_key(PRIVATE, ec.SECP256R1())
    theirs = ec.derive_private_key(THEIRS, ec.SECP256R1()).public_key()
    agreed = private.exchange(ec.ECDH(), theirs)

    assert agreed.hex() == AGREED
    assert derive(agreed).hex() == DERIVED


def test_the_public_key_is_spki_without_padding() -> None:
    key = TokenReceiver().public_key
    assert len(key) == 122
    assert "=" not in key

    loaded = load_der_public_key(unpacked(key))
    assert isinstance(loaded, ec.EllipticCurvePublicKey)
    assert loaded.curve.name == "secp256r1"


def test_each_sign_in_has_a_key_of_its_own() -> None:
    assert TokenReceiver().public_key != TokenReceiver().public_key


def test_another_terminal_cannot_open_it() -> None:
    with pytest.raises(NotForUs, match="seal"):
        TokenReceiver().open(**sealed_for(TokenReceiver().public_key, TOKEN))


@given(st.data())
def test_one_changed_bit_anywhere_breaks_the_seal(data: st.DataObject) -> None:
    terminal = TokenReceiver()
    sealed = sealed_for(terminal.public_key, TOKEN)
    part = data.draw(st.sampled_from(["ciphertext", "nonce"]))
    raw = bytearray(unpacked(sealed[part]))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(NotForUs):
        terminal.open(**{**sealed, part: unpadded(bytes(raw))})


@pytest.mark.parametrize("part", ["dashboard_public_key", "ciphertext", "nonce"])
@pytest.mark.parametrize("text", ["", "A", "not base64url!", "AAAA", "é"])
def test_what_is_malformed_is_refused_and_is_no_crash(part: str, text: str) -> None:
    terminal = TokenReceiver()
    with pytest.raises(NotForUs):
        terminal.open(**{**sealed_for(terminal.public_key, TOKEN), part: text})


@pytest.mark.parametrize(
    "key",
    [
        ec.generate_private_key(ec.SECP384R1()).public_key(),
        ed25519.Ed25519PrivateKey.generate().public_key(),
    ],
)
def test_a_key_of_another_kind_is_refused(
    key: ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey,
) -> None:
    terminal = TokenReceiver()
    sealed = sealed_for(terminal.public_key, TOKEN)
    with pytest.raises(NotForUs):
        terminal.open(**{**sealed, "dashboard_public_key": unpadded(key.public_bytes(*SPKI))})


def test_a_token_that_is_no_text_is_refused() -> None:
    terminal = TokenReceiver()
    with pytest.raises(NotForUs, match="malformed"):
        terminal.open(**sealed_for(terminal.public_key, "zmb_t_é"))


def test_the_private_key_stays_out_of_its_text() -> None:
    terminal = TokenReceiver()
    assert repr(terminal) == f"<TokenReceiver {terminal.public_key[-8:]}>"
