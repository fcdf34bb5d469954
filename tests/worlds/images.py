"""Makes OCI layouts and wheels for tests of images."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LAYER = "application/vnd.oci.image.layer.v1.tar"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
Entry = tuple[tarfile.TarInfo, bytes]


def entry(name: str, content: bytes = b"", **changes: Any) -> Entry:
    """Make one entry of a layer."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o644
    for key, value in changes.items():
        setattr(info, key, value)
    return info, content


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Entry:
    """Make an entry that is a link."""
    return entry(name, type=kind, linkname=target)


def layer(entries: Sequence[Entry]) -> bytes:
    """Pack a layer."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def write_layout(folder: Path, layers: Sequence[bytes], *, name: str = "test") -> Path:
    """Write a layout with one image; every second layer is compressed."""
    (folder / "blobs" / "sha256").mkdir(parents=True)
    told = []
    for number, content in enumerate(layers):
        packed, kind = (gzip.compress(content), f"{LAYER}+gzip") if number % 2 else (content, LAYER)
        told.append({"mediaType": kind, **_blob(folder, packed)})
    manifest = _blob(folder, json.dumps({"schemaVersion": 2, "layers": told}).encode())
    row: Mapping[str, Any] = {
        "mediaType": MANIFEST,
        **manifest,
        "annotations": {"org.opencontainers.image.ref.name": name},
        "platform": {"os": "linux", "architecture": MACHINES.get(platform.machine(), platform.machine())},
    }
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [row]}))
    return folder


def _blob(folder: Path, content: bytes) -> dict[str, Any]:
    name = hashlib.sha256(content).hexdigest()
    (folder / "blobs" / "sha256" / name).write_bytes(content)
    return {"digest": f"sha256:{name}", "size": len(content)}


def small_root(marker: str) -> list[Entry]:
    """Give a root with a shell and what starts a command, and no more; its Python is only there by name."""
    programs = {name: shutil.which(name) or "" for name in ("sh", "nice", "prlimit", "cat", "ls")}
    libraries = {found for program in programs.values() for found in _libraries(program)}
    entries = [
        entry("usr/", type=tarfile.DIRTYPE, mode=0o755),
        entry("usr/bin/", type=tarfile.DIRTYPE, mode=0o755),
        *(link(name, f"usr/{name}") for name in ("bin", "lib", "lib64")),
        *(entry(f"usr/bin/{name}", Path(path).read_bytes(), mode=0o755) for name, path in programs.items()),
        entry("usr/bin/python3", b"#!/bin/sh\n", mode=0o755),
        entry("etc/marker", marker.encode()),
    ]
    # Through the links, as layers of real images name what lies behind them.
    return [
        *entries,
        *(entry(path.strip("/"), Path(path).read_bytes(), mode=0o755) for path in sorted(libraries)),
    ]


def _libraries(program: str) -> list[str]:
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
    return re.findall(r"(/lib\S+)", told.stdout)


def write_wheel(folder: Path, name: str, source: str) -> Path:
    """Write a wheel of one module."""
    place = folder / f"{name}-1.0-py3-none-any.whl"
    facts = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(place, "w") as wheel:
        wheel.writestr(f"{name}.py", source)
        wheel.writestr(f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{facts}/RECORD", "")
    return place
