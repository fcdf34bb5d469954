"""Images: unpacked without belief in what they say, and seen by a run in place of the host's programs."""

import os
import socket
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sexton_runner.images.build import CannotBuild, Recipe, build, debian_words
from sexton_runner.images.oci_layout import BadLayout, unpack
from sexton_runner.images.store import default_folder, find, offered
from sexton_runner.images.tree import digest_of
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.probe import make_sandbox
from tests.fakes.control_plane import open_plane
from tests.worlds.images import Entry, entry, layer, link, small_root, write_layout, write_wheel
from tests.worlds.runner import running, settings_for
from tests.worlds.sandbox import Cage


def unpacked(folder: Path, *layers: list[Entry]) -> Path:
    """Unpack layers into a root, beside which a file stands that nothing may change."""
    (folder / "outside").mkdir()
    (folder / "outside" / "kept").write_text("as it was")
    root = folder / "root"
    root.mkdir()
    unpack(write_layout(folder / "layout", [layer(entries) for entries in layers]), "", root)
    return root


def test_layers_lie_on_one_another_with_what_they_take_away(tmp_path: Path) -> None:
    root = unpacked(
        tmp_path,
        [entry("etc/a", b"1"), entry("etc/b", b"2"), entry("old/x/y", b"3"), link("lib", "usr/lib")],
        [entry("etc/.wh.a"), entry("etc/b", b"4"), entry("old/.wh..wh..opq"), entry("lib/deep/z", b"5")],
        [entry("old/new", b"6"), link("same", "etc/b", tarfile.LNKTYPE), entry(".wh.gone")],
    )
    files = [path for path in root.rglob("*") if path.is_file() and (root / "lib") not in path.parents]

    found = {str(path.relative_to(root)): path.read_text() for path in files}

    assert found == {"etc/b": "4", "usr/lib/deep/z": "5", "old/new": "6", "same": "4"}


OUT = "../outside/kept"
HOSTILE: dict[str, list[Entry]] = {
    "a name that leads out": [entry(OUT, b"x")],
    "one within": [entry(f"etc/../{OUT}", b"x")],
    "whiteout of the root's parent": [entry(".wh...")],
    "a second name of what is outside": [link("mine", OUT, tarfile.LNKTYPE)],
    "of an absolute path": [link("mine", "/etc/passwd", tarfile.LNKTYPE)],
    "of a link": [link("way", "/etc/passwd"), link("mine", "way", tarfile.LNKTYPE)],
    "links in a circle": [link("a", "b"), link("b", "a"), entry("a/x", b"x")],
    "a file as a folder": [entry("f", b"x"), entry("f/g", b"x")],
    "the root as a file": [entry("./", b"x")],
    "deeper than allowed": [entry("/".join(["d"] * 99), b"x")],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=list(HOSTILE))
def test_a_layer_that_would_lead_out_of_the_image_is_refused(tmp_path: Path, entries: list[Entry]) -> None:
    with pytest.raises(BadLayout):
        unpacked(tmp_path, entries)

    assert (tmp_path / "outside" / "kept").read_text() == "as it was"
    assert {each.name for each in tmp_path.iterdir()} == {"outside", "root", "layout"}


def test_links_lead_nowhere_but_within_the_image(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = unpacked(
        tmp_path,
        [link("up", "../../../../outside"), link("over", str(outside)), link("slash", "/")],
        [
            entry("up/kept", b"mine"),
            entry("over/kept", b"mine"),
            entry("slash/top", b"mine"),
            entry("over/.wh.kept"),
        ],
    )

    assert (outside / "kept").read_text() == "as it was"
    assert [each.name for each in outside.iterdir()] == ["kept"]
    assert (root / "top").read_text() == "mine"


def test_devices_are_left_out_and_nobody_elses_identity_can_be_taken(tmp_path: Path) -> None:
    layers = [
        layer(
            [
                entry("dev/mem", type=tarfile.CHRTYPE),
                entry("p", type=tarfile.FIFOTYPE),
                entry("su", b"x", mode=0o6755),
            ]
        )
    ]
    root = tmp_path / "root"
    root.mkdir()
    done = unpack(write_layout(tmp_path / "layout", layers), "test", root)

    assert (root / "su").stat().st_mode & 0o7777 == 0o755
    assert {each.name for each in root.iterdir()} == {"su"}
    assert [each.partition(":")[0] for each in done.left_out] == ["dev/mem", "p", "su"]


def test_what_is_too_large_damaged_or_no_layout_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    sound = write_layout(tmp_path / "sound", [layer([entry("f", b"x" * 5000)])])
    with pytest.raises(BadLayout, match="more than"):
        unpack(sound, "", root, max_bytes=4999)
    with pytest.raises(BadLayout, match="has 0 images of the name 'other'"):
        unpack(sound, "other", root)
    with pytest.raises(BadLayout, match="no OCI image layout"):
        unpack(tmp_path, "", root)

    # A header that says that three megabytes of name follow.
    name = layer([entry("n" * (3 << 20), b"x")])
    with pytest.raises(BadLayout):
        unpack(write_layout(tmp_path / "name", [name]), "", root)
    with pytest.raises(BadLayout, match=r"cannot be read"):
        unpack(write_layout(tmp_path / "cut", [b"", layer([entry("f", b"x" * 5000)])[:700]]), "", root)

    for blob in (sound / "blobs" / "sha256").iterdir():
        blob.write_bytes(blob.read_bytes() + b" ")
    with pytest.raises(BadLayout, match="damaged or exchanged"):
        unpack(sound, "", root)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"base": "alpine"}, "--from is host"),
        ({"base": "host", "apt": ("git",)}, "need --from debian"),
        ({"base": "debian:bookworm", "apt": ("git; rm -rf /",)}, "no name of a Debian package"),
        ({"base": "host", "npm": ("eslint",)}, "NAME@1.2.3"),
        ({"base": "host", "npm": ("--prefix=/@1",)}, "NAME@1.2.3"),
        ({"base": "host", "pip": ("requests",)}, "has no version"),
        ({"base": "host", "pip": ("--editable=.",)}, "has no version"),
        ({"base": "oci:nowhere"}, "no OCI image layout"),
    ],
)
def test_a_recipe_that_cannot_be_followed_leaves_nothing(
    tmp_path: Path, recipe: dict[str, str], said: str
) -> None:
    with pytest.raises(CannotBuild, match=said):
        build(tmp_path, "web", Recipe(**recipe))  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == []


def test_a_debian_s_devices_and_sockets_are_left_out_and_nobody_elses_identity_can_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")

    def debian(words: Sequence[str]) -> None:
        root = Path(words[-1])
        unpack(write_layout(tmp_path / "layout", [layer(small_root("debian"))]), "", root)
        os.mkfifo(root / "console")
        with socket.socket(socket.AF_UNIX) as log:
            log.bind(str(root / "log"))
        (root / "bin/cat").chmod(0o4755)

    built = build(tmp_path / "images", "deb", Recipe(base="debian:bookworm"), run=debian)

    assert sorted(each.partition(":")[0] for each in built.left_out) == ["console", "log", "usr/bin/cat"]
    assert not any((built.image.root / name).exists() for name in ("console", "log"))
    assert (built.image.root / "bin/cat").stat().st_mode & 0o7777 == 0o755
    assert digest_of(built.image.root) == built.image.facts.digest

    # What somebody put there later is told apart, and keeps nobody waiting who looks.
    os.mkfifo(built.image.root / "later")

    assert digest_of(built.image.root) != built.image.facts.digest


def test_a_debian_is_made_by_what_is_there_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotBuild, match="install mmdebstrap"):
        debian_words("bookworm", ["git"], tmp_path)

    program = tmp_path / "mmdebstrap"
    program.touch(mode=0o755)

    assert debian_words("bookworm", ["git"], tmp_path / "root") == [
        *(str(program), "--variant=minbase", "--format=directory"),
        "--include=ca-certificates,python3,util-linux,git",
        *("bookworm", str(tmp_path / "root")),
    ]


async def test_packages_of_npm_are_added_without_their_scripts_and_found_by_name(
    cage: Cage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []

    def npm(words: Sequence[str]) -> None:
        asked.append(words)
        place = Path(words[words.index("--prefix") + 1])
        (place / "bin").mkdir(parents=True)
        (place / "lib/node_modules/greeting").mkdir(parents=True)
        (place / "lib/node_modules/greeting/cli.sh").write_text("#!/bin/sh\necho hello; echo $NODE_PATH\n")
        (place / "lib/node_modules/greeting/cli.sh").chmod(0o755)
        (place / "bin/greeting").symlink_to("../lib/node_modules/greeting/cli.sh")

    monkeypatch.setattr("sexton_runner.images.build.shutil.which", lambda name: f"/usr/bin/{name}")
    build(tmp_path / "images", "greet", Recipe(base="host", npm=("greeting@1.0.0",)), run=npm)
    monkeypatch.undo()
    dressed(cage, tmp_path / "images", "greet", monkeypatch)
    ending = await cage.run("sh", "greeting")
    (words,) = asked

    assert ending.response_text.split() == ["hello", "/opt/sexton/node/lib/node_modules"]
    assert {"--global", "--ignore-scripts"} < set(words)
    assert words[-1] == "greeting@1.0.0"

    layout = write_layout(tmp_path / "layout", [layer(small_root("no node"))])
    with pytest.raises(CannotBuild, match="need node"):
        build(tmp_path / "images", "bad", Recipe(base=f"oci:{layout}", npm=("greeting@1.0.0",)), run=npm)


def dressed(cage: Cage, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = find(folder, name)
    assert image is not None

    def with_image(*given: object) -> Sandbox:
        return replace(make_sandbox(*given), image=image)  # type: ignore[arg-type]

    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", with_image)


async def test_a_run_sees_its_image_in_place_of_the_hosts_programs(
    cage: Cage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = write_layout(tmp_path / "layout", [layer(small_root("of the image"))])
    folder = tmp_path / "images"
    made = build(folder, "small", Recipe(base=f"oci:{layout}")).image
    assert made.facts.digest == digest_of(made.root)
    assert list(offered(folder)) == ["image:small", f"image:small@{made.facts.digest}"]
    assert find(folder, f"small@sha256:{'0' * 64}") is None

    dressed(cage, folder, "small", monkeypatch)
    ending = await cage.run(
        "sh", "cat /etc/marker; echo; ls /usr/bin; ls /etc; echo x >/usr/bin/x || echo refused"
    )
    assert ending.failure_reason is None, ending.response_text
    assert ending.response_text.split() == [
        *("of", "the", "image", "cat", "ls", "nice", "prlimit", "python3", "sh", "marker", "refused"),
    ]


async def test_packages_of_python_are_added_to_what_the_host_has(
    cage: Cage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path, "greeting", "TEXT = 'hello from a wheel'\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    folder = tmp_path / "images"
    build(folder, "words", Recipe(base="host", pip=("greeting==1.0",)))
    before = digest_of(folder / "words" / "root")
    with pytest.raises(CannotBuild, match="status"):
        build(folder, "words", Recipe(base="host", pip=("greeting==2.0",)))
    assert digest_of(folder / "words" / "root") == before

    dressed(cage, folder, "words", monkeypatch)
    found = await cage.python("import greeting", "print(json.dumps({'said': greeting.TEXT}))")
    assert found == {"said": "hello from a wheel"}


async def test_a_runner_offers_its_images_and_refuses_a_run_whose_image_it_lacks(tmp_path: Path) -> None:
    layout = write_layout(tmp_path / "layout", [layer(small_root("one"))])
    folder = tmp_path / "images"
    build(folder, "small", Recipe(base=f"oci:{layout}"))
    async with open_plane() as plane, running(settings_for(plane, tmp_path, images=folder, slots=1)):
        for name in ("small", "large"):
            plane.give("Show.\n```sh\ncat /etc/marker\n```\n")["policy"]["image"] = name
        await plane.until(lambda: len(plane.reports()) == 2)
        assert "image:small" in plane.of("heartbeat")[0].offers

        build(folder, "later", Recipe(base=f"oci:{layout}"))
        await plane.until(lambda: "image:later" in (plane.of("heartbeat")[-1].offers or ()))
    small, large = plane.reports()

    assert (small.outcome, small.response_text) == ("processed", "one")
    assert large.failure_reason == "startup_posture"
    assert "this runner does not have the image large" in large.response_text


def test_the_folder_of_images_is_named_by_the_environment() -> None:
    assert default_folder({"SEXTON_IMAGES": "/srv/images", "HOME": "/x"}) == Path("/srv/images")
    assert default_folder({"XDG_DATA_HOME": "/data"}) == Path("/data/sexton/images")
