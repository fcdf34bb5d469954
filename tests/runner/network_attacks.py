"""Attacks on the network of a run: each a program that tries to reach more than its agent may.

``python -m tests.runner.network_attacks FOLDER`` carries them out, as ``tests.runner.attacks`` does, in
workspaces whose agent may reach one host that does not exist, and is lent a credential.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import trio

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.redact import Redactor
from sexton_runner.run_network import open_network
from sexton_runner.wire import NetworkPolicy, Policy
from tests.runner.attacks import ATTACKS, CANARY, Attack, carry_out

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
    "stand in for the proxy": Attack("""
def bind(address, *options):
    with socket.socket() as s:
        for option in options: s.setsockopt(socket.SOL_SOCKET, option, 1)
        s.bind((address, 3128)); s.listen(); return s.getsockname()
for address in ("127.0.0.1", "0.0.0.0"):
    refused(address, lambda: bind(address))
    refused(address, lambda: bind(address, socket.SO_REUSEADDR))
    refused(address, lambda: bind(address, socket.SO_REUSEADDR, socket.SO_REUSEPORT))
for pid in (1, 2, os.getppid(), "self"):
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError: continue
    for name in names:
        try:
            place = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError: continue
        if place.startswith("socket:") or place.endswith("/network"): print("BROKEN", pid, name, place)
"""),
    "make a way of its own": Attack("""
import fcntl, struct
def ioctl(number, rest):
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        return fcntl.ioctl(s, number, rest)
request = struct.pack("16sH22x", b"lo", 0x1043)
for name, number in (("flags", 0x8914), ("address", 0x8916), ("route", 0x890B), ("mtu", 0x8922)):
    refused(name, lambda: ioctl(number, bytes(120) if name == "route" else request))
def netlink(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(2)
        s.send(struct.pack("=IHHII", 16 + len(body), kind, 0x605, 1, 0) + body)
        got = s.recv(65536)
    told, = struct.unpack_from("=H", got, 4)
    number, = struct.unpack_from("=i", got, 16)
    if told != 2 or number == 0: return told, number
    raise OSError(-number)
dummy = struct.pack("=HH8sHHHH8s", 12, 3, b"dummy9", 16, 0x8012, 10, 1, b"dummy")
refused("a device", lambda: netlink(16, bytes(16) + dummy))
address = struct.pack("=BBBBIHH4s", 2, 24, 0, 0, 1, 8, 2, bytes((10, 9, 8, 7)))
refused("an address", lambda: netlink(20, address))
refused("a route", lambda: netlink(24, struct.pack("=8BIHHI", 2, 0, 0, 0, 254, 3, 0, 1, 0, 8, 4, 1)))
refused("a tunnel", lambda: os.open("/dev/net/tun", os.O_RDWR))
"""),
    "find the credential that the proxy puts in": Attack("""
import glob
if not os.environ["SEXTON_SECRET_HUB_TOKEN"].startswith("sxt_"): print("BROKEN it is lent nothing")
for path in (*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline"),
             *glob.glob("/run/sexton/**", recursive=True), *glob.glob("/workspace/**", recursive=True)):
    try:
        text = open(path, "rb").read().decode("latin-1") if os.path.isfile(path) else ""
    except OSError: continue
    if CANARY in text: print("BROKEN", path)
    if "PRIVATE KEY" in text and "/proc/" not in path: print("BROKEN a key in", path)
"""),
}


async def carry_out_networked(folder: Path) -> dict[str, str]:
    """Carry out these, and those on a sandbox's network that it has anyway."""
    known = ("reach the network", "reach the host's loopback", "reach sockets of the host")
    attacks = {**NETWORK_ATTACKS, **{name: ATTACKS[name] for name in known}}
    policy = Policy(
        network_policy=NetworkPolicy(allow=("allowed.example",)), secrets_map={"hub": {"token": CANARY}}
    )
    shown: list[object] = []
    async with open_network(policy, EgressSettings(), Redactor({}), shown.append) as network:
        return await carry_out(folder, [], attacks, network=network)


if __name__ == "__main__":
    os.environ["SEXTON_RUNNER_TOKEN"] = CANARY
    results = trio.run(carry_out_networked, Path(sys.argv[1]))
    sys.stdout.write(orjson.dumps(results).decode())
