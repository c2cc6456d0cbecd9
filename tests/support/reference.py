"""What was written down of kube-scheduler v1.36, in a folder beside the recorded cases."""

import os
from pathlib import Path

import pytest

from support.repository import ROOT

REFERENCE = Path(os.environ.get("CONFORMANCE") or ROOT.parent / "shared" / "conformance").parent / "reference"
with_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"no reference of kube-scheduler at {REFERENCE}")
