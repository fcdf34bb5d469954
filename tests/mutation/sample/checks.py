"""What holds of the sample; not collected with the other tests, for the tool alone is to run it."""

from tests.mutation.sample.rules import Lease, is_long, larger


def test_the_larger_one() -> None:
    assert (larger(1, 2), larger(2, 1), larger(2, 2)) == (2, 2, 2)


def test_the_end_of_a_lease() -> None:
    assert Lease(5).expires_at == 35


def test_what_is_long() -> None:
    assert (is_long(60), is_long(61)) == (False, True)
