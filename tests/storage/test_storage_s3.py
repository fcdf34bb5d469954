"""The S3 store: contents go there in parts and come back in ranges, and its faults are told clearly."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from sexton_storage.objects import s3_calls, s3_store
from sexton_storage.objects.s3_address import BadAddress, read_address
from sexton_storage.objects.s3_store import S3Store
from sexton_storage.objects.store import ObjectMissing, ObjectStoreFault
from sexton_storage.records.blobs import CHUNK_BYTES
from tests.fakes.s3 import LEAST_PART, REGION, Mood
from tests.worlds.s3 import PREFIX, needs_fake, open_store

ONE, TWO = (UUID(int=number) for number in (1, 2))
LARGE = bytes(range(256)) * (LEAST_PART // 256) + b"and a little more"
SMALL = b"a few words"


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As short as S3 allows."""
    monkeypatch.setattr(s3_store, "PART_BYTES", LEAST_PART)


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


async def read(store: S3Store, object_id: UUID, start: int, end: int) -> bytes:
    return b"".join([piece async for piece in store.read(object_id, start, end)])


async def test_contents_of_any_length_go_to_the_store_and_come_back_in_ranges() -> None:
    async with open_store() as (store, fake):
        await store.put(ONE, len(LARGE), pieces(LARGE))
        await store.put(TWO, len(SMALL), pieces(SMALL))
        await store.put(TWO, len(SMALL), pieces(SMALL))

        assert (await store.measure(ONE), await store.measure(TWO)) == (len(LARGE), len(SMALL))

        found = await read(store, ONE, 0, len(LARGE))
        assert hashlib.sha256(found).digest() == hashlib.sha256(LARGE).digest()

        across = s3_store.PART_BYTES - 3, s3_store.PART_BYTES + 5
        assert await read(store, ONE, *across) == LARGE[slice(*across)]
        assert await read(store, TWO, 2, 3) == SMALL[2:3]
        assert fake.most_body <= s3_store.PART_BYTES
        assert not fake.uploads

        assert await store.settle_owner(b"us") == b"us"
        assert await store.settle_owner(b"them") == b"us"

        page = await store.listed("")
        assert ([one for one, _ in page.objects], page.following) == ([ONE, TWO], None)

        for _ in range(2):
            await store.delete(ONE)
        with pytest.raises(ObjectMissing):
            await store.measure(ONE)
        with pytest.raises(ObjectMissing):
            await read(store, ONE, 0, 1)


@needs_fake
async def test_what_was_begun_and_never_ended_is_found_and_given_up() -> None:
    async with open_store() as (store, fake):
        fake.uploads["left"] = f"{PREFIX}{ONE}", {1: b"x"}
        fake.uploads["of another"] = f"{PREFIX}{TWO}", {}
        fake.uploads["somebody else's"] = f"other/{ONE}", {}

        assert [one for one, _ in (await store.listed("")).objects] == [ONE, TWO]

        await store.put(ONE, len(LARGE), pieces(LARGE))
        assert set(fake.uploads) == {"of another", "somebody else's"}

        await store.delete(TWO)
        assert set(fake.uploads) == {"somebody else's"}

        async def breaks_off() -> AsyncIterator[bytes]:
            yield LARGE
            raise OSError("the disk")

        with pytest.raises(OSError, match="the disk"):
            await store.put(TWO, len(LARGE), breaks_off())
        assert set(fake.uploads) == {"somebody else's"}


@needs_fake
async def test_a_list_goes_on_page_by_page_and_leaves_out_what_is_not_ours() -> None:
    async with open_store() as (store, fake):
        for number in range(1, 6):
            await store.put(UUID(int=number), len(SMALL), pieces(SMALL))
        fake.objects[f"{PREFIX}notes.txt"] = fake.objects[f"other/{ONE}"] = fake.objects[f"{PREFIX}{ONE}"]
        fake.page, after, found = 2, "", list[UUID]()
        while True:
            page = await store.listed(after)
            found += [one for one, _ in page.objects]
            if page.following is None:
                break
            after = page.following

        assert found == [UUID(int=number) for number in range(1, 6)]


SAYS = {
    Mood.REFUSES: "403",
    Mood.BREAKS: "cannot be reached",
    Mood.STANDS_STILL: "took too long",
}
READS = {**SAYS, Mood.SHORTENS: "another range", Mood.CUTS: "cannot be reached"}
SENDS = {**SAYS, Mood.FAILS_LATE: "could not put", Mood.TRICKS: "document type"}


@needs_fake
async def test_a_store_that_does_wrong_is_told_from_one_that_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_calls, "WAITS_S", ())
    monkeypatch.setattr(s3_calls, "CALL_S", 0.3)
    monkeypatch.setattr(s3_calls, "PIECE_S", 0.3)
    monkeypatch.setattr(s3_store, "PART_BYTES", 1 << 16)
    monkeypatch.setattr("tests.fakes.s3.LEAST_PART", 0)
    large = LARGE[: 3 << 16]
    async with open_store() as (store, fake):
        await store.put(TWO, len(SMALL), pieces(SMALL))

        for fake.mood, words in READS.items():
            with pytest.raises(ObjectStoreFault, match=words):
                await read(store, TWO, 0, len(SMALL))
        for fake.mood, words in SENDS.items():
            with pytest.raises(ObjectStoreFault, match=words):
                await store.put(ONE, len(large), pieces(large))

        fake.mood = Mood.WELL
        assert await read(store, TWO, 0, len(SMALL)) == SMALL

        await store.put(ONE, len(large), pieces(large))
        assert not fake.uploads

        store._calls._address = read_address("s3://files", "http://127.0.0.1:9")
        with pytest.raises(ObjectStoreFault, match="cannot be reached"):
            await store.measure(TWO)


@needs_fake
async def test_wrong_credentials_and_a_wrong_bucket_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_store() as (store, _):
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with pytest.raises(ObjectStoreFault, match=r"403 .*SignatureDoesNotMatch") as told:
            await store.settle_owner(b"us")

        assert "another" not in str(told.value)

    monkeypatch.undo()
    async with open_store() as (store, fake):
        store._calls._address = read_address("s3://nowhere", fake.endpoint, REGION)
        with pytest.raises(ObjectStoreFault, match="no such bucket"):
            await store.settle_owner(b"us")


@pytest.mark.parametrize(
    ("store", "endpoint"),
    [
        ("files", None),
        ("s3://", None),
        ("s3://A", None),
        ("s3://files/../x", None),
        ("s3://files/a b", None),
        ("s3://files?x", None),
        ("s3://files", "ftp://x"),
        ("s3://files", "http://key:secret@x"),
        ("s3://files", "http://x/path"),
        ("s3://files", "http://[::1"),
        ("s3://files", "http://x:99999"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(store: str, endpoint: str | None) -> None:
    with pytest.raises(BadAddress):
        read_address(store, endpoint)
