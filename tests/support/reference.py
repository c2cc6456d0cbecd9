"""Recorded cases of kube-scheduler v1.37, older ones in a folder beside them, and facts in another one."""

import os
from pathlib import Path

import pytest

from support.repository import ROOT

CASES = Path(os.environ.get("CONFORMANCE") or ROOT.parent / "shared" / "conformance-1.37")
"""The folder of the recorded cases."""
FORMER_CASES = Path(os.environ.get("CONFORMANCE_FORMER") or CASES.parent / "conformance")
"""The folder of the cases of older versions: v1.22 for Policy."""
FORMER = frozenset({"policy"})
"""The case files that are taken from there."""
with_cases = pytest.mark.skipif(
    not (CASES.is_dir() and FORMER_CASES.is_dir()),
    reason=f"no recorded cases at {CASES} and {FORMER_CASES}; name the folders in CONFORMANCE and CONFORMANCE_FORMER",
)
PLUGIN_CASES = CASES.parent / "conformance-plugins"
"""The folder of the cases of kubernetes-sigs/scheduler-plugins."""
with_plugin_cases = pytest.mark.skipif(not PLUGIN_CASES.is_dir(), reason=f"no recorded cases at {PLUGIN_CASES}")
REFERENCE = CASES.parent / "reference"
with_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no reference of kube-scheduler at {REFERENCE}")


def case_file(name: str) -> Path:
    """Return the path of the case file with this name."""
    return (FORMER_CASES if name in FORMER else CASES) / f"{name}.jsonl.gz"
