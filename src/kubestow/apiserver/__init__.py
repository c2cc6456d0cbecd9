"""The embedded control plane: a Kubernetes API server small enough to ship, with controllers and nodes that act.

It works on plain JSON objects: each is encoded once when it is written, and lists and watches hand out those bytes.
Nothing here knows the scheduler; it is one client among others.
"""

from kubestow.apiserver.controlplane import ControlPlane, Options, StartError
from kubestow.apiserver.kubelets.scripts import Pace

__all__ = ["ControlPlane", "Options", "Pace", "StartError"]
