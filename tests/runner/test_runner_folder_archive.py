"""What is packed of a folder comes out the same, and a tar that means harm is not unpacked."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import zstandard

from sexton_runner.kept_workspace import MAX_WINDOW, WorkspaceLost, decompress
from sexton_runner.sandbox import folder_archive

PROGRAM = Path(folder_archive.__file__)
MIB = 1 << 20


def archive(*words: object) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-I", str(PROGRAM), *map(str, words)]
    return subprocess.run(line, capture_output=True, check=False)


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, target, size
    return made


def tar_of(file: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for one in entries:
            tar.addfile(one, io.BytesIO(bytes(one.size)))
    return file


def test_a_folder_comes_out_as_it_was_but_for_what_leads_elsewhere(tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "in").mkdir()
    (source / "in" / "given").write_text("x")
    (source / "deep" / "in").mkdir()
    (source / "deep" / "er" / "f").write_bytes(b"\x00" * 70_000)
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o4755)
    (source / "deep" / "up").symlink_to("../run")
    (source / "passwd").symlink_to("/etc/passwd")
    (source / "far").symlink_to("deep/../../b")
    os.mkfifo(source / "pipe")
    target.mkdir()

    packed = archive("pack", source, MIB)
    assert packed.returncode == 0, packed.stderr

    (tmp_path / "t").write_bytes(packed.stdout)
    done = archive("unpack", tmp_path / "t", target, MIB)

    assert done.returncode == 0, done.stderr

    found = sorted(str(path.relative_to(target)) for path in target.rglob("*"))
    assert found == ["deep", "deep/er", "deep/er/f", "deep/in", "deep/up", "run"]
    assert (target / "deep" / "up").read_text() == "#!/bin/sh\n"
    assert (target / "run").stat().st_mode & 0o7777 == 0o755
    assert archive("pack", source, 1000).stderr == b"it is larger than a workspace may be\n"


ATTACKS = {
    "absolute": (entry("/tmp/w5-evil", size=1),),
    "upwards": (entry("a/../../evil", size=1),),
    "dot": (entry("./evil", size=1),),
    "empty part": (entry("a//b"),),
    "link up": (entry("l", tarfile.SYMTYPE, "../evil"),),
    "link to the root": (entry("l", tarfile.SYMTYPE, "/etc"),),
    "through a link": (entry("l", tarfile.SYMTYPE, "d"), entry("l/evil", size=1)),
    "hard link": (entry("a", size=1), entry("h", tarfile.LNKTYPE, "a")),
    "device": (entry("null", tarfile.CHRTYPE),),
    "pipe": (entry("p", tarfile.FIFOTYPE),),
    "twice": (entry("a", size=1), entry("a", size=2)),
    "too deep": (entry("/".join("d" * 70)),),
    "too large": (entry("a", size=2 * MIB),),
    "no folder": (entry("nowhere/a", size=1),),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_tar_that_means_harm_is_not_unpacked(attack: str, tmp_path: Path) -> None:
    target = tmp_path / "top" / "target"
    target.mkdir(parents=True)
    tar = tar_of(tmp_path / "t", *ATTACKS[attack])

    with pytest.raises((folder_archive.Refused, OSError)):
        folder_archive.unpack(str(tar), str(target), MIB)

    assert [path for path in tmp_path.rglob("*evil*") if path.name == "evil"] == []
    assert not Path("/tmp/w5-evil").exists()


def test_a_tar_that_is_cut_off_is_not_unpacked(tmp_path: Path) -> None:
    tar = tar_of(tmp_path / "t", entry("a", size=5_000))
    tar.write_bytes(tar.read_bytes()[:2_000])
    (tmp_path / "b").mkdir()

    done = archive("unpack", tar, tmp_path / "b", MIB)

    assert (done.returncode, done.stderr != b"") == (3, True)


def test_a_small_snapshot_does_not_become_a_large_one(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    bomb.write_bytes(zstandard.ZstdCompressor().compress(bytes(2 * MIB)))
    wide = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    greedy = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    large = tmp_path / "large"
    large.write_bytes(greedy.compress(os.urandom(2 * MAX_WINDOW)) + greedy.flush())
    (tmp_path / "noise").write_bytes(b"no frame at all")

    for name in ("bomb", "large", "noise"):
        with pytest.raises(WorkspaceLost):
            decompress(tmp_path / name, tmp_path / "tar", MIB)
