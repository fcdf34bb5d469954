"""Renders the Helm chart, holds it to Kubernetes' schemas, and looks how much the systemd units forbid.

``python -m scripts.check_packages FOLDER``: the folder has ``helm`` and ``kubernetes-validate``. Each file
in ``charts/sexton/ci`` is one way to set the chart up. Where helm or systemd-analyze cannot be had, that is
said.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parent.parent
CHART: Final = ROOT / "charts" / "sexton"
KUBERNETES: Final = ("1.33", "1.37")
"""The oldest release that the chart takes, and the newest that is known here."""
OF_OTHERS: Final = frozenset({"ScaledObject", "ServiceMonitor"})
"""Kinds of KEDA and of the operator of Prometheus, whose schemas are not Kubernetes' own."""
MOST_EXPOSED: Final = 3.0
"""By systemd-analyze, whose scale ends at 10."""


def main(words: list[str]) -> int:
    """Print a line for each thing that was looked at; 1 if something was wrong with one of them."""
    wrong = [*check_chart(Path(words[0])), *check_units()]
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


def check_chart(tools: Path) -> list[str]:
    """What is wrong with the chart, in each way to set it up."""
    helm = tools / "helm"
    if not helm.exists():
        print("helm cannot be had on this machine; the chart was not looked at")
        return []
    wrong = []
    for values in (CHART / "values.yaml", *sorted((CHART / "ci").glob("*.yaml"))):
        name = values.relative_to(CHART)
        linted = run(helm, "lint", "--strict", CHART, "--values", values)
        rendered = run(
            helm, "template", "release", CHART, "--kube-version", KUBERNETES[0], "--values", values
        )
        if linted.returncode or rendered.returncode:
            wrong.append(f"{name}: {linted.stdout}{rendered.stderr}")
            continue
        kinds = [document["kind"] for document in yaml.safe_load_all(rendered.stdout) if document]
        for version in KUBERNETES:
            wrong += (
                f"{name}, Kubernetes {version}: {line}" for line in invalid(tools, rendered.stdout, version)
            )
        print(f"{name}: {len(kinds)} objects, of {', '.join(sorted(set(kinds)))}")
    return wrong


def invalid(tools: Path, manifests: str, version: str) -> list[str]:
    """What these break of the schemas of one release of Kubernetes."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(manifests)
        file.flush()
        judged = run(tools / "kubernetes-validate", "--strict", "-k", version, file.name)
    told = (judged.stdout + judged.stderr).splitlines()
    lines = [line for line in told if not line.startswith("INFO")]
    return [line for line in lines if not any(f"for kind {kind} " in line for kind in OF_OTHERS)]


def check_units() -> list[str]:
    """Units that forbid too little."""
    if shutil.which("systemd-analyze") is None:
        print("systemd-analyze is not installed; the units were not looked at")
        return []
    wrong = []
    for unit in sorted((ROOT / "systemd").glob("*.service")):
        judged = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
        exposure = float(judged.stdout.rpartition("Overall exposure level for ")[2].split()[1])
        print(f"{unit.name}: exposed {exposure} of 10")
        if exposure > MOST_EXPOSED:
            wrong.append(f"{unit.name} is exposed {exposure}, more than {MOST_EXPOSED}")
    return wrong


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it, whatever comes of it."""
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
