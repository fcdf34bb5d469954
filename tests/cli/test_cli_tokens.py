"""Which token, server and workspace a command uses, and what becomes of those that are no good."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sexton_cli.data_folder import KEY_FILE, keep_address
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said

NOBODYS = "zmb_t_" + "0" * 64


@pytest.fixture
def key(server: ServerProcess) -> str:
    return str(server.ready["api_key"])


class Stranger(http.server.BaseHTTPRequestHandler):
    """Knows no page."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


@pytest.fixture(scope="module")
def another_service() -> Iterator[str]:
    """Something on a port that is no Sexton server."""
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    thread = threading.Thread(target=service.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{service.server_address[1]}"
    service.shutdown()
    thread.join()
    service.server_close()


# --- the order ----------------------------------------------------------------------------------------------


def test_a_flag_comes_before_the_environment_and_that_before_standard_input(shell: Shell, key: str) -> None:
    asked = ("whoami", "--token-stdin")

    assert (
        shell.json(*asked, "--token", key, stdin=NOBODYS, SEXTON_TOKEN=NOBODYS)["token_source"] == "--token"
    )
    assert shell.json(*asked, stdin=NOBODYS, SEXTON_TOKEN=key)["token_source"] == "SEXTON_TOKEN"
    assert shell.json(*asked, stdin=f"{key}\n")["token_source"] == "standard input"


def test_what_is_kept_comes_last(shell: Shell, key: str) -> None:
    assert shell("login", "--token", key).returncode == 0
    assert shell.json("whoami")["token_source"] == str(shell.credentials)

    ended = shell("whoami", "--token", NOBODYS)
    assert ended.returncode == 77
    assert "UZ-AUTH-002" in said(ended)


def test_sign_in_takes_a_piped_token_unasked_in_the_same_order(shell: Shell, key: str) -> None:
    assert shell("login", stdin=key).returncode == 0
    assert key in shell.credentials.read_text()
    assert shell("login", stdin=NOBODYS, SEXTON_TOKEN=key).returncode == 0

    refused = shell("login", "--token", NOBODYS, stdin=key, SEXTON_TOKEN=key)
    assert refused.returncode == 77
    assert key in shell.credentials.read_text(), "what is refused replaces nothing"


def test_other_commands_leave_a_piped_standard_input_alone(shell: Shell, key: str) -> None:
    assert shell("login", "--token", key).returncode == 0
    assert shell.json("whoami", stdin=NOBODYS)["token_source"] == str(shell.credentials)


@pytest.mark.parametrize("text", ["", "\n", "two words", "zmb_t_\u00e9", "a" * 20_000])
def test_what_is_no_token_is_never_sent(shell: Shell, text: str) -> None:
    ended = shell("login", stdin=text, SEXTON_BASE_URL="http://127.0.0.1:1")

    assert ended.returncode == 2
    assert "standard input" in said(ended)


# --- servers ------------------------------------------------------------------------------------------------


def test_a_kept_token_goes_to_its_own_server_only(shell: Shell, key: str, another_service: str) -> None:
    assert shell("login", "--token", key).returncode == 0

    ended = shell("whoami", "--base-url", another_service)
    assert ended.returncode == 77
    assert said(ended) == f"sexton: not signed in to {another_service}. Run 'sexton login'."


def test_who_is_on_the_servers_machine_is_told_of_its_first_key(
    bare_shell: Shell, server: ServerProcess, tmp_path: Path
) -> None:
    base_url = server.ready["base_url"]
    keep_address(tmp_path, base_url)
    key_file = tmp_path / KEY_FILE
    key_file.write_text(f"{server.ready['api_key']}\n", encoding="ascii")
    ended = bare_shell("whoami", "--base-url", base_url, SEXTON_DATA=str(tmp_path))
    signed_in = bare_shell("login", "--base-url", base_url, stdin=key_file.read_text(encoding="ascii"))

    assert said(ended) == (
        f"sexton: not signed in to {base_url}."
        " Run 'sexton login', or use the first key of this machine's server:"
        f" sexton login --base-url {base_url} < {key_file}"
    )
    assert signed_in.returncode == 0, signed_in.stderr


def test_after_signing_in_the_address_need_not_be_named(
    bare_shell: Shell, server: ServerProcess, key: str
) -> None:
    base_url = server.ready["base_url"]

    assert bare_shell("login", "--base-url", f"{base_url}/", "--token", key).returncode == 0
    assert bare_shell.json("whoami")["base_url"] == base_url


def test_options_stand_on_either_side_and_the_nearer_one_wins(shell: Shell, key: str) -> None:
    assert shell("--json", "--token", key, "whoami").stdout.startswith("{")
    assert shell.json("--token", NOBODYS, "whoami", "--token", key)["token_source"] == "--token"


def test_no_server_is_status_69_and_says_how_to_start_one(shell: Shell, key: str) -> None:
    ended = shell("whoami", "--token", key, SEXTON_BASE_URL="http://127.0.0.1:1")

    assert ended.returncode == 69
    assert "http://127.0.0.1:1 cannot be reached" in said(ended)
    assert "sexton up" in said(ended)
    assert key not in ended.stderr


def test_another_service_is_status_76(shell: Shell, key: str, another_service: str) -> None:
    ended = shell("whoami", "--token", key, SEXTON_BASE_URL=another_service)

    assert ended.returncode == 76
    assert f"{another_service} does not answer as a Sexton server" in said(ended)


@pytest.mark.parametrize(
    "url", ["ftp://x", "localhost:8300", "http://", "http://u:p@h", "http://h/?q", "http://[", "http://h:x"]
)
def test_what_is_no_address_is_said_before_anything_is_sent(shell: Shell, key: str, url: str) -> None:
    flag = shell("whoami", "--token", key, "--base-url", url)
    assert (flag.returncode, "--base-url" in said(flag)) == (2, True)

    variable = shell("whoami", "--token", key, SEXTON_BASE_URL=url)
    assert (variable.returncode, "SEXTON_BASE_URL" in said(variable)) == (78, True)


# --- tokens that are no good --------------------------------------------------------------------------------


def test_without_any_token_the_way_in_is_named(shell: Shell) -> None:
    for words in (("whoami",), ("workspace", "list"), ("keys", "list")):
        ended = shell(*words)
        assert ended.returncode == 77
        assert "sexton login" in said(ended)


def test_a_revoked_key_says_so_with_code_and_request(shell: Shell, key: str) -> None:
    made = shell.json("keys", "create", "short-lived", "--token", key)
    assert shell("login", "--token", made["key"]).returncode == 0
    assert shell("keys", "revoke", "short-lived", "--token", key).returncode == 0

    ended = shell("whoami")
    assert ended.returncode == 77
    assert "UZ-APIKEY-004" in said(ended)
    assert "(request " in said(ended)
    assert made["key"] not in ended.stderr


def test_with_json_an_error_is_a_document_too(shell: Shell) -> None:
    ended = shell("whoami", "--json", "--token", NOBODYS)

    assert ended.returncode == 77
    assert ended.stdout == ""
    assert '"code":"UZ-AUTH-002"' in said(ended)
    assert '"exit_status":77' in said(ended)


def test_a_file_that_others_can_read_is_status_78(shell: Shell, key: str) -> None:
    assert shell("login", "--token", key).returncode == 0

    shell.credentials.chmod(0o644)
    ended = shell("whoami")
    assert ended.returncode == 78
    assert "chmod 600" in said(ended)


# --- whoami and logout --------------------------------------------------------------------------------------


def test_a_user_token_says_who_bears_it(shell: Shell, server: ServerProcess) -> None:
    me = shell.json("whoami", "--token", server.ready["admin_token"])

    assert me.keys() == {
        "base_url",
        "kind",
        "name",
        "role",
        "tenant_id",
        "platform_admin",
        "expires_at",
        "token",
        "token_source",
        "workspace",
        "workspaces",
    }
    assert (me["kind"], me["role"], me["platform_admin"]) == ("user", "admin", True)
    assert me["tenant_id"] == server.ready["tenant_id"]
    assert server.ready["admin_token"] not in str(me)


def test_signing_out_forgets_the_token_and_tells_that_a_key_lives_on(shell: Shell, key: str) -> None:
    assert shell("login", "--token", key).returncode == 0

    ended = shell("logout")
    assert ended.returncode == 0
    assert "still valid" in ended.stderr
    assert not shell.credentials.exists()
    assert shell("whoami").returncode == 77
    assert shell("logout").stdout == "There was nothing to forget.\n"
    assert shell.json("whoami", "--token", key)["kind"] == "api_key"


def test_signing_out_of_all_leaves_nothing(shell: Shell, server: ServerProcess, key: str) -> None:
    port = server.ready["base_url"].rpartition(":")[2]
    for url in (server.ready["base_url"], f"http://localhost:{port}"):
        assert shell("login", "--token", key, "--base-url", url).returncode == 0
    gone = shell.json("logout", "--all")

    assert len(gone["signed_out"]) == 2
    assert not shell.credentials.exists()


def test_xdg_config_home_is_honoured(shell: Shell, key: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"

    assert shell("login", "--token", key, XDG_CONFIG_HOME=str(elsewhere)).returncode == 0
    assert (elsewhere / "sexton" / "credentials.json").is_file()
    assert not shell.credentials.exists()
