"""A cause, and what causes are derived from."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.api.topology import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL
from kubestow.insight.explain.changes import Change
from kubestow.insight.explain.dry_run import DryRun
from kubestow.insight.explain.world import World
from kubestow.scheduler.cluster.arrays import IntArray

NEAR = 0.05
"""The size of a change that replaces a misspelt name."""
_SHOWN = 5
_DOMAINS = {HOSTNAME_LABEL: "node", ZONE_LABEL: "zone", REGION_LABEL: "region"}


class Cause(NamedTuple):
    """Something that stands in the way of a pod."""

    plugin: str
    """The plugin that rejects the pod or the nodes for it."""
    text: str
    """One line that names the objects concerned."""
    similar: tuple[str, ...] = ()
    """If something does not exist: the nearest names that do, the nearest first."""
    changes: tuple[Change, ...] = ()
    """Changes that would remove the cause; the caller tries them."""


class Scene:
    """A dry run without a node, for the modules that find causes in it."""

    def __init__(self, run: DryRun) -> None:
        self.run = run
        self.world = run.world
        self.pod = run.pod.pod
        self.info = run.pod
        self.cluster = run.world.cluster
        self.listers = run.world.cluster.listers
        self.table = run.world.cluster.nodes
        self.rows: IntArray = np.flatnonzero(self.table.live[: self.table.size])
        verdicts = run.evaluation.verdicts
        several = run.gated, None if verdicts is None else verdicts.failed
        self.rejecting = run.evaluation.rejecting_plugins | {one.plugin for one in several if one is not None}

    def values(self, key: str) -> Counter[str]:
        """Return the values of a node label with the number of nodes, the most frequent first."""
        counts = np.bincount(self.table.label_ids(key)[self.rows], minlength=1).tolist()
        found = {self.table.label_values(key)[number]: count for number, count in enumerate(counts) if number and count}
        return Counter(dict(sorted(found.items(), key=lambda one: -one[1])))

    def keys(self) -> Counter[str]:
        """Return the keys of node labels with the number of nodes."""
        return self.world.of_nodes(label_keys)

    def nodes(self) -> list[Node]:
        return self.world.of_nodes(_nodes)

    def reasons_on(self, names: Iterable[str]) -> str:
        """Return the most frequent reason for which nodes were rejected; empty if none was."""
        verdicts = self.run.evaluation.verdicts
        rows = {self.table.row_of[name] for name in names}
        if verdicts is None:
            return ""
        found: Counter[str] = Counter()
        for rejection, positions in verdicts.kinds():
            found[rejection.message] += len(rows.intersection(verdicts.rows[positions].tolist()))
        return max(found, key=lambda reason: found[reason], default="") if found.total() else ""


def _nodes(world: World) -> list[Node]:
    return [node for node in world.cluster.nodes.nodes if node is not None]


def label_keys(world: World) -> Counter[str]:
    """Return the keys of node labels with the number of nodes."""
    return Counter(key for node in world.of_nodes(_nodes) for key in node.metadata.labels)


def existing(names: Iterable[str]) -> str:
    """Return the list of the names that exist, to follow a sentence about one that does not."""
    known = sorted(names, key=natural)
    return f"; existing: {listed(known)}" if known else "; there is none"


def listed(names: Sequence[str], most: int = _SHOWN) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(count: int, what: str) -> str:
    """Return a count with its noun: 1 node, 2 nodes."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def domain_noun(key: str) -> str:
    """Return what a topology key divides nodes into."""
    return _DOMAINS.get(key, f"domain of {key}")


def names_in(objects: Iterable[ApiObject], namespace: str) -> list[str]:
    """Return the names of the objects of a namespace."""
    return [obj.metadata.name for obj in objects if obj.metadata.namespace == namespace]
