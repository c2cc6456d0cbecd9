"""The version of this program, in the form of Kubernetes components: for metrics, /version and the command line."""

import platform
import sys

import msgspec

import kubestow

KUBERNETES = "1.37.0"
"""The version of kube-scheduler whose behaviour is reproduced."""

_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}


def _platform() -> str:
    machine = platform.machine()
    return f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}"


class BuildInfo(msgspec.Struct, frozen=True):
    """The version in the fields of Kubernetes; those of the Go compiler describe the Python interpreter."""

    git_version: str = f"v{KUBERNETES}+kubestow.{kubestow.__version__}"
    git_commit: str = ""
    git_tree_state: str = ""
    build_date: str = ""
    go_version: str = f"python{platform.python_version()}"
    compiler: str = platform.python_implementation().lower()
    platform: str = _platform()

    @property
    def major(self) -> str:
        return KUBERNETES.split(".")[0]

    @property
    def minor(self) -> str:
        return KUBERNETES.split(".")[1]
