"""What a server says about where it listens, and who may read its numbers there."""

from ipaddress import ip_network
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sexton_cli import up
from sexton_cli.commands.server import serve
from sexton_cli.commands.shown_options import shown_options
from sexton_cli.ground import Node
from sexton_cli.settings import NodeSettings
from sexton_http.wire.tls import Tls

TLS = Tls(Path("cert.pem"), Path("key.pem"))
PROXY = (ip_network("10.0.0.1"),)


@pytest.mark.parametrize(
    ("given", "private", "risky"),
    [
        ({}, True, False),
        ({"host": "::1"}, True, False),
        ({"host": "0.0.0.0"}, False, True),
        ({"host": "sexton.internal"}, False, True),
        ({"host": "0.0.0.0", "tls": TLS}, False, False),
        ({"host": "0.0.0.0", "trusted_proxies": PROXY}, False, False),
        ({"trusted_proxies": PROXY}, False, False),
        ({"public_url": "https://agents.example.com"}, False, False),
        ({"public_url": "http://localhost:8300"}, True, False),
    ],
)
def test_a_server_in_the_open_warns_and_keeps_its_numbers_to_itself(
    given: dict[str, Any], private: bool, risky: bool
) -> None:
    settings = NodeSettings(data=Path("data"), **given)

    assert settings.is_private is private
    assert (settings.risk() is not None) is risky


def test_the_ready_file_is_written_over_nothing_that_another_put_there(tmp_path: Path) -> None:
    (tmp_path / "others").write_text("mine")
    (tmp_path / "ready.json.part").symlink_to(tmp_path / "others")
    (tmp_path / "ready.json").symlink_to(tmp_path / "others")
    node = SimpleNamespace(
        base_url="http://a", tenant_id=1, workspace_id=2, api_key="k", admin_token="t", postgres_pid=None
    )
    node.worker_pids = list

    up._write_ready(cast("Node", node), tmp_path / "ready.json", [])

    assert (tmp_path / "others").read_text() == "mine"
    assert not (tmp_path / "ready.json").is_symlink()
    assert (tmp_path / "ready.json").stat().st_mode & 0o777 == 0o600


def test_every_option_of_a_server_is_shown_with_where_it_comes_from_and_no_secret() -> None:
    words = [
        "--max-streams",
        "7",
        "--database-url",
        "postgresql://ann:s3cret@db.example/sexton",
        "--access-log",
    ]
    environment = {"SEXTON_METRICS_TOKEN": "s3cret", "SEXTON_TRUSTED_PROXIES": "10.0.0.1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        context = serve.make_context("serve", words)
    shown = {option.name: option for option in shown_options(context)}

    assert shown.keys() == {
        "/".join(one.opts + one.secondary_opts)
        for one in serve.params
        if one.name not in {"ready_file", "help"} and one.expose_value
    }
    assert (shown["--max-streams"].value, shown["--max-streams"].source) == ("7", "option")
    assert (shown["--metrics-token"].value, shown["--metrics-token"].source) == ("set", "environment")
    assert (shown["--database-url"].value, shown["--access-log"].value) == (
        "postgresql://db.example/sexton",
        "yes",
    )
    assert (shown["--trusted-proxy"].value, shown["--port"].source) == ("10.0.0.1", "default")
    assert shown["--max-in-flight"].variable == "SEXTON_MAX_IN_FLIGHT"
    assert all(option.says for option in shown.values())
    assert "s3cret" not in repr(shown)
