"""The system calls that a sandboxed command is refused, as a filter program for the kernel.

What programs of a run need is allowed; refused is what only serves to look into other processes, to change
mounts, namespaces, keys, clocks and the kernel itself, and families of sockets that no network namespace
holds back. Assembled here because it is forty lines of table and twenty of assembler: the bindings of
libseccomp want a compiler and a library that the first start on a laptop does not have.
"""

import os
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

ALLOW = 0x7FFF0000
REFUSE = 0x00050000  # with an errno in the low half
EPERM, ENOMEM, ENOSYS, EAFNOSUPPORT = 1, 12, 38, 97

LOAD, EQUAL, AT_LEAST, HAS_BIT, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT, SECOND_ARGUMENT_AT, FOURTH_ARGUMENT_AT = 0, 4, 16, 24, 40
ARGUMENT_BYTES, HALF_BYTES = 8, 4
X32_BIT = 0x40000000
NEW_NAMESPACES = 0x7E020000  # Mounts, and the six from cgroup to network: CLONE_NEW…
# unix, inet, inet6, netlink: the last three reach nothing from a network namespace of one's own, and name
# services and interface lists ask for them. VSOCK and others go past it.
SOCKET_FAMILIES = (1, 2, 10, 16)
PAIRS_THAT_STAY = (1, 5)  # Of a stream and of packets: neither end can speak to anybody else.
KIND_BITS = 0xF
TERMINAL_INJECTIONS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# Numbers on x86_64 and aarch64; calls that one of them never had are None there.
REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "personality": (135, 92),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
}

# Memory that belongs to no process, so that only a control group can bound it. Programs that would like to
# have it are told that this kernel does not know it, and do without.
UNCOUNTED: Mapping[str, tuple[int, int]] = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
}
# What reaches past the folders of a run where it shares its user with the runner: modes, owners and
# attributes of files, which Landlock does not know, and memory that is shared by name.
OF_A_SHARED_USER: Mapping[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
}
OF_ITSELF_ONLY: Mapping[str, tuple[int, tuple[int, int]]] = {
    "prlimit64": (0, (302, 261)),
    "sched_setparam": (0, (142, 118)),
    "sched_setscheduler": (0, (144, 119)),
    "sched_setaffinity": (0, (203, 122)),
    "sched_setattr": (0, (314, 274)),
    "migrate_pages": (0, (256, 238)),
    "move_pages": (0, (279, 239)),
    "setpriority": (1, (141, 140)),
    "ioprio_set": (1, (251, 30)),
    # The path: without one it is about a file that could be opened.
    "utimensat": (1, (280, 88)),
}
"""Calls that another process of the same user can be named in, and which argument does; 0 is the caller."""
# The same kind of memory, by a call that is needed otherwise: what is shared, and of no file.
SHARED, ANONYMOUS = 0x01, 0x20


@dataclass(frozen=True, slots=True)
class Machine:
    """What of the filter depends on the processor: ``column`` of the table, and calls looked at closer."""

    architecture: int
    column: int
    clone: int
    socket: int
    socketpair: int
    ioctl: int
    mmap: int
    other_abi: int | None = None


CLONE3 = 435
MACHINES: Mapping[str, Machine] = {
    "x86_64": Machine(0xC000003E, 0, clone=56, socket=41, socketpair=53, ioctl=16, mmap=9, other_abi=X32_BIT),
    "aarch64": Machine(0xC00000B7, 1, clone=220, socket=198, socketpair=199, ioctl=29, mmap=222),
}


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)


def _refuse(errno: int) -> bytes:
    return _step(RETURN, REFUSE | errno)


def _when(number: int, *steps: bytes) -> bytes:
    """Run ``steps``, which must end the program, for one call; the number has to be loaded."""
    return _step(EQUAL, number, 0, len(steps)) + b"".join(steps)


def _of_a_shared_user(machine: Machine) -> list[bytes]:
    refused = [numbers[machine.column] for numbers in OF_A_SHARED_USER.values()]
    parts = [_when(number, _refuse(EPERM)) for number in refused if number is not None]
    for argument, numbers in OF_ITSELF_ONLY.values():
        at = FIRST_ARGUMENT_AT + argument * ARGUMENT_BYTES
        parts.append(
            _when(
                numbers[machine.column],
                _step(LOAD, at),
                _step(EQUAL, 0, 0, 3),
                _step(LOAD, at + HALF_BYTES),
                _step(EQUAL, 0, 0, 1),
                _step(RETURN, ALLOW),
                _refuse(EPERM),
            )
        )
    # Without a network namespace there is no socket: not to services of the host, by their paths, either.
    parts.append(_when(machine.socket, _refuse(EAFNOSUPPORT)))
    kinds = [half for one in PAIRS_THAT_STAY for half in (_step(EQUAL, one, 0, 1), _step(RETURN, ALLOW))]
    parts.append(
        _when(
            machine.socketpair,
            _step(LOAD, SECOND_ARGUMENT_AT),
            _step(AND, KIND_BITS),
            *kinds,
            _refuse(EAFNOSUPPORT),
        )
    )
    return parts


def program(machine: Machine, *, grouped: bool = True, shares_user: bool = False) -> bytes:
    """Assemble the filter; what is not ``grouped`` gets no memory that nobody could count.

    What ``shares_user`` with the runner, and has no namespaces, reaches nothing of that user's either.

    >>> len(program(MACHINES["x86_64"])) % 8, len(program(MACHINES["aarch64"])) % 8
    (0, 0)
    """
    # Calls by another processor's numbers would pass for others of this one's.
    parts = [_step(LOAD, ARCHITECTURE_AT), _step(EQUAL, machine.architecture, 1, 0), _refuse(ENOSYS)]
    parts.append(_step(LOAD, NUMBER_AT))
    if machine.other_abi is not None:
        parts += [_step(AT_LEAST, machine.other_abi, 0, 1), _refuse(ENOSYS)]
    for numbers in REFUSED.values():
        if (number := numbers[machine.column]) is not None:
            parts.append(_when(number, _refuse(EPERM)))
    if not grouped:
        parts += [_when(there[machine.column], _refuse(ENOSYS)) for there in UNCOUNTED.values()]
        parts.append(
            _when(
                machine.mmap,
                _step(LOAD, FOURTH_ARGUMENT_AT),
                _step(HAS_BIT, ANONYMOUS, 0, 2),
                _step(HAS_BIT, SHARED, 0, 1),
                _refuse(ENOMEM),
                _step(RETURN, ALLOW),
            )
        )
    if shares_user:
        parts += _of_a_shared_user(machine)
    # Its flags lie behind a pointer, where a filter cannot look; C libraries go back to clone.
    parts.append(_when(CLONE3, _refuse(ENOSYS)))
    parts.append(
        _when(
            machine.clone,
            _step(LOAD, FIRST_ARGUMENT_AT),
            _step(HAS_BIT, NEW_NAMESPACES, 0, 1),
            _refuse(EPERM),
            _step(RETURN, ALLOW),
        )
    )
    families = [_step(EQUAL, family, 0, 1) + _step(RETURN, ALLOW) for family in SOCKET_FAMILIES]
    sockets = [half for pair in families for half in (pair[:8], pair[8:])]
    for call in (machine.socket, machine.socketpair):
        parts.append(_when(call, _step(LOAD, FIRST_ARGUMENT_AT), *sockets, _refuse(EAFNOSUPPORT)))
    requests = [half for one in TERMINAL_INJECTIONS for half in (_step(EQUAL, one, 0, 1), _refuse(EPERM))]
    parts.append(_when(machine.ioctl, _step(LOAD, SECOND_ARGUMENT_AT), *requests, _step(RETURN, ALLOW)))
    parts.append(_step(RETURN, ALLOW))
    return b"".join(parts)


def this_machine() -> Machine | None:
    """Give the machine that this is; None for one that no filter is known for."""
    return MACHINES.get(platform.machine())


def open_filter(*, grouped: bool = True, shares_user: bool = False) -> int | None:
    """Open a descriptor, to be closed by the caller, from which the filter can be read once."""
    machine = this_machine()
    if machine is None:
        return None
    descriptor = os.memfd_create("seccomp", os.MFD_CLOEXEC)
    os.write(descriptor, program(machine, grouped=grouped, shares_user=shares_user))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
