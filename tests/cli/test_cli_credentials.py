"""Tokens are kept by server, whole or not at all, and for their owner alone."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sexton_cli.credentials import CredentialFile, Credentials, Kept, default_folder
from sexton_cli.exits import CONFIG, Fault

ONE, OTHER = "https://one.example", "https://other.example"
TOKEN = "zmb_t_" + "7" * 64


def keep(file: CredentialFile, url: str, token: str) -> None:
    file.change(lambda kept: kept.with_server(url, Kept(token)))


def test_a_folder_that_is_not_there_keeps_nothing(tmp_path: Path) -> None:
    assert CredentialFile(tmp_path / "none").load() == Credentials()
    assert not (tmp_path / "none").exists()


def test_what_is_kept_is_found_again_and_is_its_owners_alone(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path / "a" / "b")
    keep(file, ONE, TOKEN)

    assert CredentialFile(tmp_path / "a" / "b").load().of(ONE).token == TOKEN
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_a_token_belongs_to_one_server(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    keep(file, ONE, TOKEN)
    keep(file, OTHER, "theirs")
    kept = file.load()

    assert (kept.of(ONE).token, kept.of(OTHER).token, kept.current) == (TOKEN, "theirs", OTHER)
    assert kept.of("https://third.example").token is None


def test_forgetting_the_last_server_removes_the_file(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    keep(file, ONE, TOKEN)
    keep(file, OTHER, TOKEN)
    assert file.change(lambda kept: kept.without(OTHER)).current is None
    assert file.path.exists()

    file.change(lambda kept: kept.without(ONE))
    assert not file.path.exists()


def test_many_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    urls = [f"https://{number}.example" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda url: keep(CredentialFile(tmp_path), url, TOKEN), urls))

    assert sorted(CredentialFile(tmp_path).load().servers) == sorted(urls)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_change_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    keep(file, ONE, TOKEN)
    before = file.path.read_bytes()

    def fails(kept: Credentials) -> Credentials:
        raise LookupError

    with pytest.raises(LookupError):
        file.change(fails)

    assert file.path.read_bytes() == before


def test_a_file_that_others_can_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    keep(file, ONE, TOKEN)
    file.path.chmod(0o640)
    with pytest.raises(Fault) as fault:
        file.load()

    assert fault.value.status == CONFIG
    assert fault.value.way_out == f"chmod 600 {file.path}"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", f'{{"servers": {{"{ONE}": {{"token": {TOKEN!r}}}}}}}', '{"servers": {"x": "zmb_t_7"}}'],
)
def test_a_broken_file_is_named_and_not_quoted(tmp_path: Path, text: str) -> None:
    file = CredentialFile(tmp_path)
    file.path.write_text(text)
    file.path.chmod(0o600)
    with pytest.raises(Fault) as fault:
        file.load()

    assert fault.value.status == CONFIG
    assert str(file.path) in fault.value.line()
    assert "zmb_t_" not in fault.value.line()
    assert fault.value.__suppress_context__


def test_a_file_of_another_release_is_left_alone(tmp_path: Path) -> None:
    file = CredentialFile(tmp_path)
    file.path.write_text('{"version": 2, "shape": "unknown"}')
    file.path.chmod(0o600)
    with pytest.raises(Fault, match="another release"):
        keep(file, ONE, TOKEN)

    assert "unknown" in file.path.read_text()


def test_who_keeps_the_file_elsewhere_and_links_to_it_keeps_the_link(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "config", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "credentials.json").symlink_to(elsewhere / "mine.json")
    keep(CredentialFile(folder), ONE, TOKEN)

    assert (folder / "credentials.json").is_symlink()
    assert (elsewhere / "mine.json").is_file()
    assert CredentialFile(folder).load().of(ONE).token == TOKEN


def test_the_folder_is_where_the_xdg_convention_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/world/of/one")
    plain = Path("/world/of/one/.config/sexton")

    assert default_folder({}) == plain
    assert default_folder({"XDG_CONFIG_HOME": ""}) == plain
    assert default_folder({"XDG_CONFIG_HOME": "relative"}) == plain
    assert default_folder({"XDG_CONFIG_HOME": "/etc/of/one"}) == Path("/etc/of/one/sexton")


def test_tokens_stay_out_of_every_text() -> None:
    kept = Credentials().with_server(ONE, Kept(TOKEN, "ws"))
    assert TOKEN not in f"{kept!r} {kept} {kept.of(ONE)!r}"
