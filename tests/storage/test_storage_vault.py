"""Seals, opens and rotates."""

import base64
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from sexton_storage.masterkeys import add_key, drop_keys_before, keys_from_text, load_or_make_keys
from sexton_storage.startup import StartupFailed
from sexton_storage.vault import KEY_FILE, Vault, VaultError, open_vault

KEY = bytes(range(32))
TEXT = base64.b64encode(KEY).decode()


@given(st.binary(max_size=5_000), st.binary(max_size=100))
def test_what_was_sealed_opens_for_the_same_identity(plaintext: bytes, identity: bytes) -> None:
    vault = Vault({1: KEY})
    assert vault.open(vault.seal(plaintext, identity), identity) == plaintext


def test_the_same_secret_is_never_sealed_twice_alike() -> None:
    vault = Vault({1: KEY})
    first, second = vault.seal(b"secret", b"a"), vault.seal(b"secret", b"a")

    assert first != second
    assert b"secret" not in first


def test_a_secret_moved_to_another_row_does_not_open() -> None:
    vault = Vault({1: KEY})
    with pytest.raises(VaultError):
        vault.open(vault.seal(b"secret", b"row a"), b"row b")


@given(st.integers(min_value=0), st.integers(1, 255))
def test_a_changed_byte_anywhere_is_noticed(where: int, change: int) -> None:
    vault = Vault({1: KEY})
    sealed = bytearray(vault.seal(b"a secret of some length", b"row"))
    sealed[where % len(sealed)] ^= change
    with pytest.raises(VaultError):
        vault.open(bytes(sealed), b"row")


@given(st.binary(max_size=200))
def test_any_other_bytes_are_no_sealed_secret(junk: bytes) -> None:
    with pytest.raises(VaultError):
        Vault({1: KEY}).open(junk, b"row")


def test_another_master_key_opens_nothing() -> None:
    sealed = Vault({1: KEY}).seal(b"secret", b"row")
    with pytest.raises(VaultError):
        Vault({1: bytes(32)}).open(sealed, b"row")


def test_the_newest_key_seals_and_all_open() -> None:
    old = Vault({1: KEY})
    both = Vault({1: KEY, 2: bytes(32)})
    sealed = old.seal(b"secret", b"row")
    assert both.open(sealed, b"row") == b"secret"
    assert not both.is_current(sealed)

    resealed = both.reseal(sealed, b"row")
    assert both.is_current(resealed)
    assert Vault({2: bytes(32)}).open(resealed, b"row") == b"secret"

    with pytest.raises(VaultError, match="master key 2"):
        old.open(resealed, b"row")


def test_a_representation_tells_versions_and_no_keys() -> None:
    assert repr(Vault({1: KEY, 3: KEY})) == "<Vault with master keys [1, 3]>"


# --- the keys -----------------------------------------------------------------------------------------------


def test_a_first_start_makes_a_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    sealed = open_vault(tmp_path, {}).seal(b"secret", b"row")

    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [p.name for p in tmp_path.iterdir()] == [KEY_FILE]
    assert open_vault(tmp_path, {}).open(sealed, b"row") == b"secret"


def test_a_key_in_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    vault = open_vault(tmp_path, {"SEXTON_MASTER_KEY": f"7:{TEXT}"})

    assert vault.newest == 7
    assert not (tmp_path / KEY_FILE).exists()


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    open_vault(tmp_path, {})
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(StartupFailed, match="0600"):
        open_vault(tmp_path, {})


def test_rotation_adds_a_key_and_lets_go_of_old_ones_when_told(tmp_path: Path) -> None:
    path = tmp_path / KEY_FILE
    sealed = open_vault(tmp_path, {}).seal(b"secret", b"row")
    assert add_key(path) == 2

    vault = open_vault(tmp_path, {})
    assert vault.newest == 2
    assert vault.open(sealed, b"row") == b"secret"

    drop_keys_before(path, 2)
    assert set(load_or_make_keys(path)) == {2}

    with pytest.raises(VaultError):
        open_vault(tmp_path, {}).open(sealed, b"row")
    with pytest.raises(StartupFailed):
        drop_keys_before(path, 3)


def test_a_key_file_that_is_there_is_never_replaced_by_a_first_start(tmp_path: Path) -> None:
    first = load_or_make_keys(tmp_path / KEY_FILE)
    assert load_or_make_keys(tmp_path / KEY_FILE, random_bytes=bytes) == first


@pytest.mark.parametrize(
    "text",
    ["", "1:", "x:" + TEXT, "1:AAAA", f"1:{TEXT},1:{TEXT}", f"0:{TEXT}", f"{2**32}:{TEXT}", "1:\u00e9"],
)
def test_keys_that_are_none_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(StartupFailed) as refused:
        keys_from_text(text, "SEXTON_MASTER_KEY")
    assert TEXT not in str(refused.value)


def test_keys_may_stand_on_lines_or_between_commas() -> None:
    other = base64.b64encode(bytes(32)).decode()

    assert keys_from_text(TEXT, "x") == {1: KEY}
    assert keys_from_text(f"1:{TEXT},\n2:{other}\n", "x") == {1: KEY, 2: bytes(32)}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupFailed, match="nowhere"):
        open_vault(tmp_path / "nowhere", {})
