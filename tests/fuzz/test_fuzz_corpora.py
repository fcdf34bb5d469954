"""What fuzzing has found worth keeping is tried again, with a few inputs beside each."""

import pytest
from hypothesis import given, settings, strategies as st

from tests.fuzz.corpus import FOLDER, MOST_BYTES, kept
from tests.fuzz.targets import TARGETS
from tests.thorough import examples

TRIED = 400
OF_SLOW_ONES = {"http2": 100}
"""Each input of these is a world of its own, lived through three times."""


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_that_is_kept_is_read_alike_by_all(name: str) -> None:
    inputs = kept(name)

    for data in inputs:
        TARGETS[name](data)

    assert inputs, "a target without an input finds nothing by itself"


@pytest.mark.parametrize("name", TARGETS)
def test_so_is_what_differs_from_one_in_a_place(name: str) -> None:
    pieces = st.binary(max_size=4) | st.sampled_from(
        [b"\r\n", b"\0", b"9", b'"', b"\\", b"%2e", b": ", b"\xff"]
    )

    @settings(max_examples=examples(OF_SLOW_ONES.get(name, TRIED)), deadline=None)
    @given(st.sampled_from(kept(name)), st.data(), pieces)
    def check(seed: bytes, data: st.DataObject, piece: bytes) -> None:
        at = data.draw(st.integers(0, len(seed)))
        gone = data.draw(st.integers(0, 4))
        TARGETS[name](seed[:at] + piece + seed[at + gone :])

    check()


def test_the_inputs_are_few_and_each_belongs_to_a_target() -> None:
    files = sorted(FOLDER.iterdir())

    assert [path.stem for path in files] == sorted(TARGETS)
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
