"""Objects that keep all of their JSON: for extenders, which get them as the API server has them, and for recordings."""

from msgspec import Raw

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod


class WholeNode(Node, frozen=True):
    source: Raw = Raw()


class WholePod(Pod, frozen=True):
    source: Raw = Raw()


class WholePendingPod(Pod, frozen=True):
    """Keeps it only until it has a node: most pods of a cluster have one."""

    source: Raw = Raw()


class WholeObject(ApiObject, frozen=True):
    """Of any kind."""

    source: Raw = Raw()
