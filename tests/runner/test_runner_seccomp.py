"""The filter of system calls says what its table says, on both processors."""

import struct

import pytest

from sexton_runner.sandbox.seccomp import ALLOW, MACHINES, REFUSE, REFUSED, UNCOUNTED, Machine, program

EPERM, ENOMEM, ENOSYS, EAFNOSUPPORT = 1, 12, 38, 97
SIGCHLD = 17
NEW_USER, THREAD = 0x10000000, 0x00010000
X86, ARM = MACHINES["x86_64"], MACHINES["aarch64"]


def verdict(
    machine: Machine,
    number: int,
    *arguments: int,
    architecture: int | None = None,
    grouped: bool = True,
    shares_user: bool = False,
) -> int:
    """Run the program as the kernel would; give ALLOW, or the errno."""
    data = struct.pack("=iIQ6Q", number, architecture or machine.architecture, 0, *[*arguments, *[0] * 6][:6])
    code = program(machine, grouped=grouped, shares_user=shares_user)
    place: int = 0
    held: int = 0
    operand: int
    while True:
        what, if_true, if_false, operand = struct.unpack_from("=HBBI", code, place * 8)
        place += 1
        match what:
            case 0x20:
                held = struct.unpack_from("=I", data, operand)[0]
            case 0x15:
                place += if_true if held == operand else if_false
            case 0x35:
                place += if_true if held >= operand else if_false
            case 0x45:
                place += if_true if held & operand else if_false
            case 0x54:
                held &= operand
            case 0x06:
                return operand if operand == ALLOW else operand - REFUSE
            case _:
                raise AssertionError(what)


@pytest.mark.parametrize("name", list(REFUSED))
@pytest.mark.parametrize("machine", [X86, ARM])
def test_a_call_of_the_table_is_refused(machine: Machine, name: str) -> None:
    number = REFUSED[name][machine.column]
    if number is not None:
        assert verdict(machine, number) == EPERM


@pytest.mark.parametrize(("machine", "read", "execve"), [(X86, 0, 59), (ARM, 63, 221)])
def test_what_programs_need_is_allowed(machine: Machine, read: int, execve: int) -> None:
    assert verdict(machine, read) == verdict(machine, execve) == ALLOW
    assert verdict(machine, machine.clone, SIGCHLD) == verdict(machine, machine.clone, THREAD) == ALLOW
    assert verdict(machine, machine.ioctl, 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", [X86, ARM])
def test_threads_may_be_made_and_namespaces_not(machine: Machine) -> None:
    assert verdict(machine, machine.clone, NEW_USER | SIGCHLD) == EPERM
    assert verdict(machine, 435) == ENOSYS


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize(
    ("family", "expected"), [(1, ALLOW), (2, ALLOW), (10, ALLOW), (16, ALLOW), (17, EAFNOSUPPORT), (40, 97)]
)
def test_sockets_are_allowed_by_family(machine: Machine, family: int, expected: int) -> None:
    assert verdict(machine, machine.socket, family) == expected
    assert verdict(machine, machine.socketpair, family) == expected


@pytest.mark.parametrize("machine", [X86, ARM])
def test_nothing_can_be_pushed_into_a_terminal(machine: Machine) -> None:
    assert verdict(machine, machine.ioctl, 0, 0x5412) == verdict(machine, machine.ioctl, 0, 0x541C) == EPERM


def test_calls_of_another_processor_are_refused_whatever_their_number() -> None:
    assert verdict(X86, 0, architecture=0x40000003) == ENOSYS
    assert verdict(X86, 0x40000000) == ENOSYS
    assert verdict(ARM, 63, architecture=X86.architecture) == ENOSYS


def test_each_number_stands_once() -> None:
    for column in (0, 1):
        numbers = [pair[column] for pair in REFUSED.values() if pair[column] is not None]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("name", list(UNCOUNTED))
@pytest.mark.parametrize("machine", [X86, ARM])
def test_memory_that_nobody_could_count_is_for_control_groups_only(machine: Machine, name: str) -> None:
    number = UNCOUNTED[name][machine.column]

    assert verdict(machine, number) == ALLOW
    assert verdict(machine, number, grouped=False) == ENOSYS


@pytest.mark.parametrize(
    ("flags", "grouped", "said"),
    [(0x21, True, ALLOW), (0x21, False, ENOMEM), (0x22, False, ALLOW), (0x01, False, ALLOW)],
    ids=["shared, in a group", "shared", "private", "of a file"],
)
@pytest.mark.parametrize("machine", [X86, ARM])
def test_what_is_mapped_without_a_file_is_private_where_there_is_no_group(
    machine: Machine, flags: int, grouped: bool, said: int
) -> None:
    assert verdict(machine, machine.mmap, 0, 4096, 3, flags, grouped=grouped) == said
