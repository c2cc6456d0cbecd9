"""The recorded decisions of kube-scheduler that must come out the same, and the command that runs them."""

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.reference import PLUGIN_CASES, case_file, with_cases, with_plugin_cases
from support.repository import ROOT

MUST_PASS = [
    "basic",
    "config",
    "config2",
    "consumable",
    "counters",
    "csilimit",
    "devicetaint",
    "dra",
    "dra2",
    "gated",
    "hints",
    "hints2",
    "images",
    "imagevol",
    "interpod",
    "large",
    "mixed",
    "nodeaffinity",
    "nominated",
    "policy",
    "ports",
    "preemption",
    "profiles",
    "quantity",
    "resize",
    "resize2",
    "resources",
    "scoring",
    "selector",
    "services",
    "spread",
    "storagecap",
    "taints",
    "trace",
    "volumes",
]
"""The case files that pass completely."""

PLUGINS = ["gang", "load", "numa", "numa-score", "quota"]
"""The case files of plugins of `kubestow.contrib`; all pass completely."""


QUANTITY = {"kind": "quantity", "id": "q-1", "inputs": ["1k"]}
GOOD = {**QUANTITY, "expect": [{"value": "1000", "milli": "1000000", "canonical": "1k"}]}
BAD = {**QUANTITY, "id": "q-2", "expect": [{"value": "1024", "milli": "1000000", "canonical": "1k"}]}
UNKNOWN = {"kind": "horoscope", "id": "h-1", "expect": []}


def run_conformance(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROOT / "scripts" / "conformance", *arguments], capture_output=True, text=True, check=False)


def write_cases(path: Path, *cases: dict[str, Any]) -> Path:
    text = "".join(f"{json.dumps(case)}\n" for case in cases)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@with_cases
@pytest.mark.parametrize("name", MUST_PASS)
def test_recorded_cases(name: str) -> None:
    """Every case of the file comes out as kube-scheduler recorded it."""
    ran = run_conformance("-v", case_file(name))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].endswith(" passed, 0 failed")


@with_plugin_cases
@pytest.mark.parametrize("name", PLUGINS)
def test_cases_of_plugins(name: str) -> None:
    """Every case of the file comes out as in kubernetes-sigs/scheduler-plugins."""
    ran = run_conformance("-v", PLUGIN_CASES / f"{name}.jsonl")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].endswith(" passed, 0 failed")


def test_a_case_of_a_plugin(tmp_path: Path) -> None:
    """Placed pods need no UID; a pod that waits for a node is a pod of its group, too."""

    def pod(name: str, **spec: str) -> dict[str, Any]:
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}

    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}}
    placed = [pod("a", nodeName="n"), pod("b", nodeName="n"), pod("c")]
    case = {"plugin": "Coscheduling", "args": {}, "pods": [pod("d")]}
    fits, fails = ({**case, "objects": [{**group, "spec": {"minMember": size}}, *placed]} for size in (4, 5))
    accepted = {**fits, "expect": {"preFilter": {"code": "Success"}}}
    rejected = {**fails, "expect": {"preFilter": {"code": "UnschedulableAndUnresolvable"}}}
    assert run_conformance("-v", write_cases(tmp_path / "groups.jsonl", accepted, rejected)).returncode == 0


def test_all_passed(tmp_path: Path) -> None:
    """A line for the file, a summary in the same form, exit status 0."""
    ran = run_conformance(write_cases(tmp_path / "sizes.jsonl", GOOD, GOOD))
    assert (ran.returncode, ran.stdout) == (0, "sizes: 2 passed, 0 failed\ntotal: 2 passed, 0 failed\n")


def test_some_failed(tmp_path: Path) -> None:
    """A difference fails the case and the run; -v shows it with the case's id."""
    path = write_cases(tmp_path / "sizes.jsonl", GOOD, BAD)
    ran = run_conformance(path)
    assert (ran.returncode, ran.stdout) == (1, "sizes: 1 passed, 1 failed\ntotal: 1 passed, 1 failed\n")
    assert "  q-2: '1k': value is 1000, expected 1024\n" in run_conformance("-v", path).stdout


def test_unknown_kinds_fail(tmp_path: Path) -> None:
    """What the program cannot do yet counts as failed."""
    ran = run_conformance("-v", write_cases(tmp_path / "stars.jsonl", UNKNOWN))
    assert ran.returncode == 1
    assert "  h-1: kind horoscope: not implemented\n" in ran.stdout


def test_lines_that_are_no_case_fail(tmp_path: Path) -> None:
    """A broken line, or a case that breaks the check, fails alone."""
    path = write_cases(tmp_path / "odd.jsonl", {"kind": "quantity", "id": "q-3"}, GOOD)
    with path.open("a") as lines:
        lines.write("not json\n")
    ran = run_conformance("-v", path)
    assert "odd: 1 passed, 2 failed" in ran.stdout
    assert "q-3: Traceback" in ran.stdout
    assert "line 3: not a case" in ran.stdout


def test_folders_and_compressed_files(tmp_path: Path) -> None:
    """A folder stands for its case files, in the order of their names; other files in it do not count."""
    write_cases(tmp_path / "b.jsonl", GOOD)
    write_cases(tmp_path / "a.jsonl.gz", GOOD, GOOD)
    (tmp_path / "README.md").write_text("not a case")
    assert (
        run_conformance(tmp_path).stdout == "a: 2 passed, 0 failed\nb: 1 passed, 0 failed\ntotal: 3 passed, 0 failed\n"
    )


def test_only_one_kind(tmp_path: Path) -> None:
    """--kind takes a kind of case or the name of a file."""
    write_cases(tmp_path / "a.jsonl", GOOD, UNKNOWN)
    write_cases(tmp_path / "b.jsonl", UNKNOWN)
    assert (
        run_conformance("--kind", "quantity", tmp_path).stdout == "a: 1 passed, 0 failed\ntotal: 1 passed, 0 failed\n"
    )
    assert run_conformance("--kind", "b", tmp_path).stdout == "b: 0 passed, 1 failed\ntotal: 0 passed, 1 failed\n"


def test_many_cases_keep_their_order(tmp_path: Path) -> None:
    """Cases that are spread over processes are still reported in their order."""
    cases = [{**BAD, "id": f"case-{i}"} for i in range(40)]
    shown = run_conformance("-v", write_cases(tmp_path / "many.jsonl", *cases)).stdout.splitlines()
    assert shown[0] == "many: 0 passed, 40 failed"
    assert [line.split(":")[0].strip() for line in shown[1:-1]] == [f"case-{i}" for i in range(10)]


@pytest.mark.parametrize("arguments", [["nowhere"], ["."], ["--kind", "dreams", "a.jsonl"]])
def test_nothing_to_run(arguments: list[str], tmp_path: Path) -> None:
    """A path or kind without cases is an error of its own, not a success."""
    write_cases(tmp_path / "a.jsonl", GOOD)
    (tmp_path / "empty").mkdir()
    place = {"nowhere": tmp_path / "nowhere", ".": tmp_path / "empty", "a.jsonl": tmp_path / "a.jsonl"}
    ran = run_conformance(*(place.get(argument, argument) for argument in arguments))
    assert ran.returncode == 2
    assert ran.stderr.startswith("scripts/conformance: ")
