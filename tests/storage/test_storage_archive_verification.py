"""An archive is verified by reading all of it: what is missing, altered, cut off or left over shows."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
import trio
from click.testing import CliRunner, Result

from sexton_cli.archives import load_parquet
from sexton_cli.commands.archive import archive as archive_command
from sexton_storage.archives.folder_place import FolderPlace
from sexton_storage.archives.lines import Tally, pack, unpack
from sexton_storage.archives.manifest import BadManifest, sha256_of
from sexton_storage.archives.verification import Flaw, NoArchive, rows_of_event
from sexton_storage.postgres import PostgresStorage
from tests.storage.test_storage_compaction import on
from tests.worlds.archives import ArchiveWorld

QUIET = {"NO_COLOR": "1", "COLUMNS": "200"}
LINES = [b'{"created_at":5,"charged_nanos":3}', b'{"created_at":9,"charged_nanos":4}']


@pytest.fixture
async def archive(postgres_storage: PostgresStorage, tmp_path: Path) -> ArchiveWorld:
    """Three batches."""
    world = await ArchiveWorld.found(postgres_storage, FolderPlace(tmp_path))
    (tmp_path / "archive").mkdir()
    world.place = FolderPlace(tmp_path / "archive")
    for _ in range(3):
        await world.ended()
        assert await world.go() is not None
    return world


def one(archive: ArchiveWorld, pattern: str) -> Path:
    """The file of this kind that the second batch has."""
    return sorted(Path(archive.place.address).glob(pattern))[1]


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def forge(path: Path) -> None:
    """Change what it says without changing that it reads."""
    path.write_bytes(path.read_bytes().replace(b'"rows":1', b'"rows":2', 1))


def forge_whole(path: Path) -> None:
    """Change it with its own hash, as somebody would who knows the format; the next one's hash is left."""
    kept = json.loads(path.read_bytes())
    text = json.dumps(kept["manifest"], separators=(",", ":")).replace('"written_at":1', '"written_at":2')
    path.write_text(f'{{"sha256":"{sha256_of(text.encode())}","manifest":{text}}}\n')


def rename_manifest(path: Path) -> None:
    path.rename(path.with_name(path.name.replace("0000000002", "0000000009")))


WRONGS: list[tuple[str, Callable[[Path], object], set[Flaw]]] = [
    ("batches/*/events.00001.jsonl.gz", Path.unlink, {Flaw.MISSING}),
    ("batches/*/events.00001.jsonl.gz", shorten, {Flaw.ALTERED}),
    (
        "batches/*/leases.00001.jsonl.gz",
        lambda path: path.write_bytes(gzip.compress(b"{}\n")),
        {Flaw.ALTERED},
    ),
    ("manifests/*.json", Path.unlink, {Flaw.MISSING, Flaw.HALF_WRITTEN}),
    ("manifests/*.json", shorten, {Flaw.MISSING, Flaw.ALTERED}),
    ("manifests/*.json", forge, {Flaw.MISSING, Flaw.ALTERED}),
    ("manifests/*.json", forge_whole, {Flaw.MISSING}),
    ("manifests/*.json", rename_manifest, {Flaw.MISSING, Flaw.ALTERED, Flaw.HALF_WRITTEN}),
    ("batches/*/events.00001.jsonl.gz", lambda path: path.with_name("x.gz").write_bytes(b""), {Flaw.ALTERED}),
]


async def test_each_wrong_that_can_be_done_to_an_archive_shows(archive: ArchiveWorld) -> None:
    folder = Path(archive.place.address)
    whole, wrong = await archive.verified()
    assert ([read.manifest.number for read in whole], wrong) == ([1, 2, 3], [])

    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for pattern, harm, flaws in WRONGS:
        harm(one(archive, pattern))
        whole, wrong = await archive.verified()
        assert {finding.flaw for finding in wrong} == flaws, (pattern, wrong)
        assert len(whole) >= 2

        for path in [path for path in folder.rglob("*") if path.is_file()]:
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
    assert (await archive.verified())[1] == []


async def test_the_rows_of_an_event_are_found_and_not_in_an_altered_object(archive: ArchiveWorld) -> None:
    (event_id,) = await archive.ended()
    await archive.go()
    tables = await archive.tables_of(event_id)
    for path in Path(archive.place.address).rglob("leases.*"):
        path.write_bytes(b"")

    assert tables == ["events", "leases", "scores"]
    assert await archive.tables_of(UUID(int=1)) == []

    with pytest.raises(BadManifest, match="leases"):
        await archive.tables_of(event_id)
    with pytest.raises(NoArchive):
        await anext(rows_of_event(FolderPlace(Path(archive.place.address) / "batches"), event_id))


async def test_with_parquet_each_object_is_there_twice_and_has_the_same_rows(
    archive: ArchiveWorld, postgres_dsn: str
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    archive.parquet = load_parquet()
    (event_id,) = await archive.ended(nanos=17)
    await archive.go()
    whole, wrong = await archive.verified()
    tables = {
        path.name.split(".")[0]: parquet.read_table(path)
        for path in Path(archive.place.address).rglob("*.parquet")
    }
    columns = await on(postgres_dsn, lambda c: c.fetch("SELECT * FROM events LIMIT 0"))

    assert (wrong, columns) == ([], [])
    assert [one.format for one in whole[-1].manifest.objects[:2]] == ["jsonl.gz", "parquet"]
    assert set(tables) == {"events", "leases", "scores"}
    assert tables["events"].column("id").to_pylist() == [str(event_id)]
    assert tables["events"].schema.field("created_at").type == "int64"
    assert tables["events"].schema.field("source_event_id").type == "string"
    assert tables["scores"].schema.field("score").type == "double"


def test_lines_come_back_as_they_went_and_what_is_cut_off_is_refused() -> None:
    tally = Tally("events")
    for line in LINES:
        tally.add(line)
    packed = pack(LINES)

    assert list(unpack(packed)) == LINES
    assert pack(LINES) == packed
    assert (tally.total().rows, tally.total().nanos) == (2, {"charged_nanos": 7})
    assert (tally.first_at, tally.last_at) == (5, 9)

    for wrong in (packed[:-1], packed + b"x", b"no gzip", gzip.compress(b"no end"), b""):
        with pytest.raises(BadManifest):
            list(unpack(wrong))


async def test_the_commands_tell_of_an_archive_and_fail_where_it_is_not_whole(
    archive: ArchiveWorld, tmp_path: Path
) -> None:
    event = json.loads(next(unpack(one(archive, "batches/*/events.*").read_bytes())))
    nobody, place = str(UUID(int=1)), archive.place.address
    whole, listed = await command("verify", place), await command("list", place, "--json")
    others = await command("list", place, "--of", nobody, "--json")
    shown, unknown = await command("show", place, event["id"], "--json"), await command("show", place, nobody)
    one(archive, "batches/*/events.*").unlink()
    missing, found = await command("verify", place), await command("verify", place, "--json")
    none = await command("verify", str(tmp_path))
    rows = json.loads(listed.stdout)["items"]

    assert [(row["number"], row["charged_nanos"]) for row in rows] == [(1, 11), (2, 11), (3, 11)]
    assert json.loads(others.stdout) == {"items": []}
    assert (whole.exit_code, rows[-1]["sha256"] in whole.stdout) == (0, True)
    assert [row["table"] for row in json.loads(shown.stdout)["items"]] == ["events", "leases", "scores"]
    assert (unknown.exit_code, "has nothing of the event" in unknown.stderr) == (1, True)
    assert (missing.exit_code, "missing: batches/0000000002-" in missing.stdout) == (1, True)
    assert [finding["flaw"] for finding in json.loads(found.stdout)["findings"]] == ["missing"]
    assert (none.exit_code, "is no archive" in none.stderr) == (2, True)


async def command(*words: str) -> Result:
    """Run a verb of ``sexton archive`` in this process, beside the loop: it has one of its own."""
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(archive_command, words, env=QUIET))
