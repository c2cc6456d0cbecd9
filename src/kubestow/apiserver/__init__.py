"""The embedded control plane: a Kubernetes API server small enough to ship, with controllers and nodes that act.

It works on plain JSON objects: each is encoded once when it is written, and lists and watches hand out those bytes.
Nothing here knows the scheduler; it is one client among others.
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
    """Imported only when asked for: its rules are used where no control plane is."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
