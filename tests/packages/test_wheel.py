"""The wheel and the source distribution: built, installed with only their declared dependencies, and run."""

import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from kubestow import __version__
from support.repository import ROOT

HATCH = (sys.executable, "-m", "hatchling", "build")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: hello}
spec:
  containers: [{name: c, image: nginx, resources: {requests: {cpu: "1"}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: the-node}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with both."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([*HATCH, "-d", folder], cwd=ROOT, check=True, capture_output=True)
    return folder


def _wheel(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def _declared() -> set[str]:
    """Return the names of all distributions that the project requires, directly or indirectly."""
    names: set[str] = set()
    waiting = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    while waiting:
        text = waiting.pop()
        name = re.split(r"[^\w.-]", text)[0]
        if "extra ==" in text or name in names:
            continue
        try:
            needs = metadata.requires(name)
        except metadata.PackageNotFoundError:
            continue
        names.add(name)
        waiting.extend(needs or ())
    return names


@pytest.fixture(scope="module")
def empty(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs folder of an environment with the wheel and only its declared dependencies."""
    folder = tmp_path_factory.mktemp("empty")
    venv.create(folder, symlinks=True)
    (site,) = (folder / "lib").glob("python*/site-packages")
    for name in _declared():
        for file in metadata.distribution(name).files or ():
            top = file.parts[0]
            if top != ".." and not (site / top).exists():
                (site / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
    with zipfile.ZipFile(_wheel(built)) as wheel:
        wheel.extractall(site)  # noqa: S202 it was just built
    program = folder / "bin/kubestow"
    program.write_text(f"#!{folder}/bin/python\nfrom kubestow.cli import main\nmain()\n")
    program.chmod(0o755)
    return folder / "bin"


def _run(programs: Path, *arguments: str, folder: Path) -> str:
    command = [str(programs / "kubestow"), *arguments]
    environment = {"HOME": str(folder), "PATH": "/nowhere"}
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_both_contain_the_whole_package(built: Path) -> None:
    """Every file of the package, including those that are not Python; the source distribution builds the same wheel."""
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    expected = {line.removeprefix("src/") for line in tracked.splitlines() if (ROOT / line).exists()}
    with zipfile.ZipFile(_wheel(built)) as wheel:
        inside = {name for name in wheel.namelist() if name.startswith("kubestow/")}
        description = wheel.read(f"kubestow-{__version__}.dist-info/METADATA").decode()
    assert expected <= inside
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needs = [line for line in re.findall(r"^Requires-Dist: (.*)$", description, re.MULTILINE) if "extra ==" not in line]
    assert len(needs) == len(project["dependencies"])
    assert _wheel(built).name.endswith("-py3-none-any.whl")
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in expected} <= names
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names


def test_it_runs_with_only_its_declared_dependencies(empty: Path, tmp_path: Path) -> None:
    """Version, explanation without a cluster, and a cluster that places a pod; without a compiler or other packages."""
    assert _run(empty, "--version", folder=tmp_path) == f"kubestow, version {__version__}\n"
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "node.yaml").write_text(NODE)
    output = _run(empty, "explain", "-f", "pod.yaml", "--cluster", "node.yaml", folder=tmp_path)
    assert "the-node" in output
    with subprocess.Popen(
        [empty / "kubestow", "up", "--port=0", "--kubeconfig=kubeconfig", "--nodes=2", "-f", "pod.yaml"],
        env={"HOME": str(tmp_path), "PATH": "/nowhere"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    ) as cluster:
        assert cluster.stdout is not None
        seen = []
        for line in cluster.stdout:
            seen.append(line)
            if "default/hello" in line and "node-" in line:
                break
        cluster.terminate()
        cluster.stdout.read()
    assert "node-" in seen[-1], seen
