"""Says what to do on a host where bubblewrap cannot make its namespaces."""

from collections.abc import Mapping
from pathlib import Path

APPARMOR = (
    "AppArmor keeps programs without a profile from making user namespaces: install the system's bubblewrap"
    " with its profile (bwrap-userns-restrict), or, as root,"
    " 'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'"
)
ORDINARY = (
    "ordinary users may not make user namespaces: as root, 'sysctl -w kernel.unprivileged_userns_clone=1'"
)
NOBODY = "user namespaces are switched off: as root, 'sysctl -w user.max_user_namespaces=16384'"
SWITCHES: Mapping[str, tuple[str, str]] = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", APPARMOR),
    "kernel/unprivileged_userns_clone": ("0", ORDINARY),
    "user/max_user_namespaces": ("0", NOBODY),
}
"""A file under /proc/sys, the value that forbids namespaces, and what to do about it."""
OTHERWISE = (
    "let bubblewrap make user namespaces; in a container, its security profile has to allow them"
    " (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
)


def namespace_advice(settings: Path = Path("/proc/sys")) -> str:
    """Look at what the kernel is told, and say what would help."""
    for name, (forbids, advice) in SWITCHES.items():
        try:
            if (settings / name).read_text(encoding="ascii").strip() == forbids:
                return advice
        except (OSError, ValueError):
            continue
    return OTHERWISE
