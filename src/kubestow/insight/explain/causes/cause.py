"""A cause, what causes are derived from, and the nearest names for one that does not exist."""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from heapq import nlargest
from os.path import commonprefix
from typing import NamedTuple

import numpy as np

from kubestow.api.meta import ApiObject
from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.api.topology import HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL
from kubestow.insight.explain.changes import Change
from kubestow.insight.explain.dry_run import DryRun
from kubestow.scheduler.cluster.arrays import IntArray

NEAR = 0.05
"""The size of a change that replaces a misspelt name."""
_SHOWN = 5
_MOST_SIMILAR = 3
_SIMILARITY = 0.7
"""The least similarity of a name, as a ratio."""
_COMPARED = 200
"""Maximum number of names that are compared letter by letter."""
_NEARLY = 0.1
"""How much less similar than the nearest name others may be."""
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
        self.rejecting = run.evaluation.rejecting_plugins | ({run.gated.plugin} if run.gated is not None else set())

    def values(self, key: str) -> Counter[str]:
        """Return the values of a node label with the number of nodes, the most frequent first."""
        counts = np.bincount(self.table.label_ids(key)[self.rows], minlength=1).tolist()
        found = {self.table.label_values(key)[number]: count for number, count in enumerate(counts) if number and count}
        return Counter(dict(sorted(found.items(), key=lambda one: -one[1])))

    def keys(self) -> Counter[str]:
        """Return the keys of node labels with the number of nodes."""
        return Counter(key for node in self.nodes() for key in node.metadata.labels)

    def nodes(self) -> list[Node]:
        nodes = (self.table.nodes[row] for row in self.rows.tolist())
        return [node for node in nodes if node is not None]

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


def nearest(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the existing names that differ in case only; else those most similar to one that does not exist."""
    names = {other: other.casefold() for other in known if other and other != name}
    same = [other for other, folded in names.items() if folded == name.casefold()]
    if same:
        return tuple(same)
    wanted, candidates = name.casefold(), sorted(set(names.values()))
    if len(candidates) > _COMPARED:
        candidates = nlargest(_COMPARED, candidates, key=lambda other: _shared_ends(other, wanted))
    close = get_close_matches(wanted, candidates, _MOST_SIMILAR, _SIMILARITY)
    ratios = {folded: SequenceMatcher(None, folded, wanted).ratio() for folded in close}
    best = max(ratios.values(), default=0.0)
    ranked = sorted(
        (folded for folded in close if ratios[folded] >= best - _NEARLY), key=lambda one: (-ratios[one], one)
    )
    return tuple(other for folded in ranked for other, its in names.items() if its == folded)[:_MOST_SIMILAR]


def _shared_ends(one: str, other: str) -> int:
    """Return the length of the common beginning and end, which a spelling mistake leaves."""
    pairs = (one, other), (one[::-1], other[::-1])
    return sum(len(commonprefix(pair)) for pair in pairs)  # noqa: RUF071 these are names, not paths


def did_you_mean(similar: Sequence[str]) -> str:
    """Return the question about similar names, or an empty string."""
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


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
