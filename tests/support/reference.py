"""Recorded cases of kube-scheduler v1.36, and facts about it in a folder beside them."""

import os
from pathlib import Path

import pytest

from support.repository import ROOT

CASES = Path(os.environ.get("CONFORMANCE") or ROOT.parent / "shared" / "conformance")
"""The folder of the recorded cases."""
REFERENCE = CASES.parent / "reference"
with_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no reference of kube-scheduler at {REFERENCE}")
