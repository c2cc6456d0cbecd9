"""Objects that keep their complete JSON: for extenders, which receive them as the API server does, and recordings."""

from msgspec import Raw

from kubestow.api.meta import ApiObject
from kubestow.api.node import Node
from kubestow.api.pod import Pod


class WholeNode(Node, frozen=True):
    source: Raw = Raw()


class WholePod(Pod, frozen=True):
    source: Raw = Raw()


class WholePendingPod(Pod, frozen=True):
    """A pod that keeps its JSON only while it has no node: most pods of a cluster have one."""

    source: Raw = Raw()


class WholeObject(ApiObject, frozen=True):
    """An object of any kind."""

    source: Raw = Raw()
