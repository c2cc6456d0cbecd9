"""Eviction of a pod: a deletion that a disruption budget can reject."""

from typing import Any

from kubestow.apiserver import errors
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.removal import Remover, read_options
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.records import Record
from kubestow.apiserver.store.store import Store

_BUDGETS = "poddisruptionbudgets.policy"


def evict(
    remover: Remover,
    namespace: str,
    name: str,
    body: dict[str, Any] | None,
    query: dict[str, str],
    intent: Intent,
) -> None:
    """Delete a pod. Raises ApiError if its disruption budget allows no more disruptions."""
    record = remover.store.get("pods", namespace, name)
    if record is None:
        raise errors.not_found("", "pods", name)
    options = read_options(body, query)
    pod = record.object()
    finished = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    if not finished and "deletionTimestamp" not in pod["metadata"] and pod["spec"].get("nodeName"):
        _charge_budget(remover.store, record, pod, intent.dry_run or options.dry_run)
    remover.delete(BY_STORAGE["pods"], namespace, name, options, intent)


def _charge_budget(store: Store, record: Record, pod: dict[str, Any], dry_run: bool) -> None:
    budgets = _budgets_of(store, record)
    if not budgets:
        return
    if len(budgets) > 1:
        raise errors.internal("this pod has more than one PodDisruptionBudget; evictions support only one")
    budget = budgets[0].object()
    status = budget.get("status", {})
    ready = {"type": "Ready", "status": "True"}.items()
    is_ready = any(ready <= one.items() for one in pod.get("status", {}).get("conditions", ()))
    if not is_ready and status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
        return
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0 or status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        needed, present = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        why = f"The disruption budget {budgets[0].name} needs {needed} healthy pods and has {present} currently"
        cause = ("", "DisruptionBudget", why)
        raise errors.too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.", causes=[cause]
        )
    if not dry_run:
        status["disruptionsAllowed"] = allowed - 1
        status.setdefault("disruptedPods", {})[record.name] = store.now()
        budget["status"] = status
        store.put(_BUDGETS, budget)


def _budgets_of(store: Store, pod: Record) -> list[Record]:
    found = []
    for record in store.collection(_BUDGETS).by_namespace.get(pod.namespace, {}).values():
        selector = from_object(record.object().get("spec", {}).get("selector"))
        if selector is not None and selector.matches(pod.labels):
            found.append(record)
    return found
