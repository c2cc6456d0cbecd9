"""The embedded control plane: a small Kubernetes API server with controllers and simulated kubelets.

It works on plain JSON objects: each is encoded once, when it is written, and lists and watches send those bytes.
Promise: no dependency on the scheduler, which is one client among others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubestow.apiserver.controlplane import ControlPlane, Options, StartError
    from kubestow.apiserver.kubelets.scripts import Pace

__all__ = ["ControlPlane", "Options", "Pace", "StartError"]

_MODULES = {
    "ControlPlane": "controlplane",
    "Options": "controlplane",
    "Pace": "kubelets.scripts",
    "StartError": "controlplane",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use; other parts of the package are also used without a control plane."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
