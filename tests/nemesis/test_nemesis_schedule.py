"""The schedule of faults: each kind has its turn, everything heals, and somebody always gets on."""

from collections import Counter

import pytest

from tests.nemesis.schedule import (
    COURSES,
    LONGEST_STALL_S,
    MEMBERS,
    TOGETHER,
    Fault,
    Group,
    Kind,
    plan,
    stalls,
)

SEEDS = range(20)
RUN_S = 30 * 60.0


@pytest.fixture(scope="module")
def plans() -> dict[int, list[Fault]]:
    return {seed: plan(seed, RUN_S) for seed in SEEDS}


def test_a_seed_decides_the_whole_schedule(plans: dict[int, list[Fault]]) -> None:
    again = {seed: plan(seed, RUN_S) for seed in SEEDS}

    assert again == plans
    assert len({tuple(faults) for faults in plans.values()}) == len(SEEDS)


def test_each_kind_has_its_turn_and_all_have_healed_at_the_end(plans: dict[int, list[Fault]]) -> None:
    kinds = [Counter(fault.kind for fault in faults) for faults in plans.values()]
    ends = [max(fault.ends_s for fault in faults) for faults in plans.values()]

    assert min(min(count[kind] for kind in Kind) for count in kinds) >= 5
    assert max(ends) <= RUN_S


def test_no_schedule_lets_nobody_get_on_for_longer_than_the_bound(plans: dict[int, list[Fault]]) -> None:
    longest = max(round(end - begin, 3) for faults in plans.values() for begin, end in stalls(faults))

    assert longest <= LONGEST_STALL_S


def test_nobody_suffers_two_faults_at_once_and_one_of_each_group_is_left(
    plans: dict[int, list[Fault]],
) -> None:
    crowds: dict[Group, int] = dict.fromkeys(Group, 0)
    twice = []
    for faults in plans.values():
        for fault in faults:
            beside = [
                one for one in faults if one.group is fault.group and one.at_s <= fault.at_s < one.ends_s
            ]
            crowds[fault.group] = max(crowds[fault.group], len(beside))
            twice += [one for one in beside if one is not fault and one.whom == fault.whom]

    assert not twice
    assert all(crowds[group] <= TOGETHER[group] for group in Group)
    assert all(TOGETHER[group] < MEMBERS[group] for group in (Group.NODE, Group.RUNNER))


def test_a_fault_lasts_as_its_kind_does(plans: dict[int, list[Fault]]) -> None:
    outside = [
        fault
        for faults in plans.values()
        for fault in faults
        if not COURSES[fault.kind].least_s <= fault.lasts_s <= COURSES[fault.kind].most_s
    ]

    assert not outside


def test_two_faults_of_the_database_in_a_row_would_be_seen_as_one_long_stall() -> None:
    found = stalls([Fault(0, Kind.FREEZE_STANDBY, 0, 15), Fault(10, Kind.FAIL_OVER, 0, 60)])

    assert found == [(0, 30)]
    assert found[0][1] - found[0][0] > LONGEST_STALL_S


def test_a_machine_without_a_fault_leaves_it_out_of_its_schedule() -> None:
    kinds = set(Kind) - {Kind.FILL_DISK}

    assert {fault.kind for fault in plan(3, RUN_S, kinds)} == kinds
