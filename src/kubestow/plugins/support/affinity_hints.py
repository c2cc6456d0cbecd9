"""Which events may let a pod be placed that affinity or anti-affinity keeps waiting.

As kube-scheduler does, hints judge namespaces by the names in a term; its namespace selector is tried on no labels.
"""

from collections.abc import Sequence

from kubestow.cluster.affinity_terms import AffinityTerms, Term, affinity_terms
from kubestow.cluster.events import Action, Registration, Resource, on
from kubestow.model.node import Node
from kubestow.model.pod import Pod


def registrations() -> Sequence[Registration]:
    """What pods rejected by affinity wait for."""
    return [
        on(Resource.POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, _pod_changed, alike=True),
        on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, _node_changed, alike=True),
    ]


def _pod_changed(waiting: Pod, old: Pod | None, new: Pod | None) -> bool:
    if old is not None and new is not None and new.metadata.uid == waiting.metadata.uid:
        # Its labels have changed: others may no longer object to it.
        return True
    if not all(pod.spec.nodeName or pod.status.nominatedNodeName for pod in (old, new) if pod is not None):
        return False
    terms = _terms_of(waiting)
    if old is not None and new is not None:
        came_near = not _match_all(terms.required, old) and _match_all(terms.required, new)
        went_away = _match_all(terms.required_anti, old) and not _match_all(terms.required_anti, new)
        return came_near or went_away
    if new is not None:
        return _match_all(terms.required, new)
    assert old is not None
    return _match_all(terms.required_anti, old) or _match_all(_terms_of(old).required_anti, waiting)


def _node_changed(waiting: Pod, old: Node | None, new: Node) -> bool:
    terms = _terms_of(waiting)
    after = new.metadata.labels
    if old is None:
        # Anti-affinity: the new node may be in a new domain, or in none.
        return bool(terms.required_anti) or any(term.topology_key in after for term in terms.required)
    before = old.metadata.labels
    joined = any(
        term.topology_key in after and before.get(term.topology_key) != after[term.topology_key]
        for term in terms.required
    )
    left = any(
        term.topology_key in before and before[term.topology_key] != after.get(term.topology_key)
        for term in terms.required_anti
    )
    return joined or left


def _terms_of(pod: Pod) -> AffinityTerms:
    return affinity_terms(pod.metadata.namespace, pod.spec.affinity)


def _match_all(terms: Sequence[Term], pod: Pod) -> bool:
    meta = pod.metadata
    return bool(terms) and all(term.matches(meta.namespace, meta.labels, {}) for term in terms)
