"""Attacks on the network of a run: each a program that tries to reach more than its agent may.

``python -m tests.runner.network_attacks FOLDER`` carries them out, as ``tests.runner.attacks`` does, in
workspaces whose agent may reach one host that does not exist.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import trio

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.redact import Redactor
from sexton_runner.run_network import open_network
from sexton_runner.wire import NetworkPolicy, Policy
from tests.runner.attacks import ATTACKS, Attack, carry_out

ASK = """
def ask(head, port=3128):
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.sendall(head.encode() + b"\\r\\n\\r\\n")
        got = b""
        while piece := s.recv(65536):
            got += piece
    return got.decode("latin-1")
"""
NETWORK_ATTACKS: Mapping[str, Attack] = {
    "reach the host by the proxy": Attack(
        ASK
        + """
hosts = ("127.0.0.1", "localhost", "[::1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0",
         "[::ffff:127.0.0.1]", "localhost.", "allowed.example@127.0.0.1")
for host in hosts:
    for head in (f"CONNECT {host}:{PORT} HTTP/1.1\\r\\nHost: {host}:{PORT}",
                 f"GET http://{host}:{PORT}/ HTTP/1.1\\r\\nHost: {host}:{PORT}"):
        got = ask(head)
        if " 200 " in got or "welcome" in got: print("BROKEN", head, got[:200])
        elif not got.startswith(("HTTP/1.1 403", "HTTP/1.1 400")): print("BROKEN no reason", head, got[:200])
"""
    ),
    "reach a cloud's metadata by the proxy": Attack(
        ASK
        + """
for host in ("169.254.169.254", "[fd00:ec2::254]", "2852039166", "metadata.google.internal"):
    got = ask(f"GET http://{host}/latest/meta-data HTTP/1.1\\r\\nHost: {host}")
    if not got.startswith(("HTTP/1.1 403", "HTTP/1.1 400")): print("BROKEN", host, got[:200])
"""
    ),
    "come in by the door of the proxy": Attack("""
def door():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("/run/sexton/network")
refused("the door", door)
refused("another door", lambda: os.mkfifo("/run/sexton/network"))
refused("the authorities", lambda: open("/run/sexton/ca.pem", "a"))
refused("the port", lambda: socket.create_server(("127.0.0.1", 3128), reuse_port=True))
"""),
}


async def carry_out_networked(folder: Path) -> dict[str, str]:
    """Carry out these, and those on a sandbox's network that it has anyway."""
    known = ("reach the network",)
    attacks = {**NETWORK_ATTACKS, **{name: ATTACKS[name] for name in known}}
    policy = Policy(network_policy=NetworkPolicy(allow=("allowed.example",)))
    shown: list[object] = []
    async with open_network(policy, EgressSettings(), Redactor({}), shown.append) as network:
        return await carry_out(folder, [], attacks, network=network)


if __name__ == "__main__":
    results = trio.run(carry_out_networked, Path(sys.argv[1]))
    sys.stdout.write(orjson.dumps(results).decode())
