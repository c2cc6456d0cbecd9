"""kubectl with the kubeconfig of an embedded control plane."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from support.apiserver.running import Running

OLDEST = (1, 32)


def kubectl_problem() -> str | None:
    """Why kubectl cannot be used; None if it can."""
    if shutil.which("kubectl") is None:
        return "kubectl is not on PATH"
    shown = subprocess.run(
        ["kubectl", "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
    )
    found = re.search(r'"gitVersion":\s*"v(\d+)\.(\d+)', shown.stdout)
    if found is None:
        return "kubectl does not report its version"
    version = (int(found[1]), int(found[2]))
    return None if version >= OLDEST else f"kubectl {version[0]}.{version[1]} is older than 1.32"


PROBLEM = kubectl_problem()


class Kubectl:
    """Runs kubectl with the server's kubeconfig."""

    def __init__(self, plane: Running, folder: Path) -> None:
        self.environment = {
            **os.environ, "KUBECONFIG": str(plane.control_plane.kubeconfig_path), "HOME": str(folder),
        }  # fmt: skip

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            ["kubectl", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
            env=self.environment,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """What a command that succeeds prints."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def refused(self, *arguments: str, stdin: str | None = None) -> str:
        """What a command that fails says."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode != 0, result.stdout
        return result.stderr

    def json(self, *arguments: str) -> Any:
        """An object or list."""
        return json.loads(self("get", *arguments, "-o", "json"))
