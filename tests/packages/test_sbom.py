"""`scripts/sbom` lists the components of a release."""

import json
import subprocess
import sys

from support.repository import ROOT


def test_every_pinned_package_is_listed() -> None:
    """With its version and the hashes of its files, as CycloneDX."""
    done = subprocess.run([sys.executable, ROOT / "scripts/sbom"], capture_output=True, text=True, check=True)
    bom = json.loads(done.stdout)
    assert (bom["bomFormat"], bom["metadata"]["component"]["name"]) == ("CycloneDX", "kubestow")
    lines = (ROOT / "requirements/run.txt").read_text().splitlines()
    pinned = {line.split()[0].split(";")[0] for line in lines if "==" in line and not line.startswith((" ", "#"))}
    assert {f"{part['name']}=={part['version']}" for part in bom["components"]} == pinned
    assert all(part["hashes"] for part in bom["components"])
