"""The node affinity of volumes, evaluated on rows.

A volume of an in-tree driver that a node has migrated to CSI is translated for that node.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from kubestow.api.csi_translation import MIGRATED, MIGRATED_PLUGINS, TranslationError, old_driver, translated
from kubestow.api.node import NodeSelector
from kubestow.api.node_selector import NodeTerm, NodeTerms, compile_node_selector
from kubestow.api.storage import CSINode, PersistentVolume, VolumeNodeAffinity
from kubestow.scheduler.cluster.arrays import BoolArray, Rows, row_count, row_numbers
from kubestow.scheduler.cluster.listers import Store
from kubestow.scheduler.cluster.node_matching import node_terms_match
from kubestow.scheduler.cluster.view import NodeView

_CACHED_SELECTORS = 65_536


def volume_terms(affinity: VolumeNodeAffinity | None) -> NodeTerms | None:
    """Return the terms of a volume's node affinity, None if it has none."""
    if affinity is None or affinity.required is None:
        return None
    return _terms(affinity.required)


@lru_cache(maxsize=_CACHED_SELECTORS)
def _terms(required: NodeSelector) -> NodeTerms:
    compiled = compile_node_selector(required)
    # Volumes are compared with the labels of a node only: every node meets conditions on its name.
    return NodeTerms(tuple(NodeTerm(labels=term.labels, errors=term.errors) for term in compiled.terms))


def usable_rows(volume: PersistentVolume, view: NodeView, rows: Rows, csi_nodes: Store[CSINode]) -> BoolArray:
    """Return by row whether a bound volume can be used there."""
    usable = usable_by(volume_terms(volume.spec.nodeAffinity), view, rows)
    driver = old_driver(volume.spec)
    if driver in MIGRATED:
        names = (view.names[row] for row in row_numbers(rows).tolist())
        migrated = np.fromiter((_is_migrated(driver, csi_nodes.get(name)) for name in names), np.bool_)
        if migrated.any():
            terms = volume_terms(_translated(volume).spec.nodeAffinity)
            usable = np.where(migrated, usable_by(terms, view, rows), usable)
    return usable


def is_usable_at(volume: PersistentVolume, labels: Mapping[str, str], csi_node: CSINode | None) -> bool:
    """Return whether a volume can be used on a node with these labels."""
    driver = old_driver(volume.spec)
    if driver in MIGRATED and _is_migrated(driver, csi_node):
        volume = _translated(volume)
    terms = volume_terms(volume.spec.nodeAffinity)
    return terms is None or terms.matches(labels, "")


def usable_by(terms: NodeTerms | None, view: NodeView, rows: Rows) -> BoolArray:
    """Return by row whether the node meets the terms of a volume."""
    if terms is None:
        return np.ones(row_count(rows), np.bool_)
    return node_terms_match(view, rows, terms)


def _is_migrated(driver: str, csi_node: CSINode | None) -> bool:
    return csi_node is not None and driver in csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")


def _translated(volume: PersistentVolume) -> PersistentVolume:
    try:
        return translated(volume)
    except TranslationError as error:
        raise ValueError(f"could not translate pv: {error}") from None
