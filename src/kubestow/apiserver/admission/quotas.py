"""ResourceQuotas: each quota that counts an object is charged for it, or the object is denied.

The used amounts are in the status of a quota; they are increased here, together with the write of the object, and
the quota controller corrects them when objects are deleted.
"""

from typing import Any

from kubestow.api import quantity
from kubestow.apiserver import quota
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.store.store import Store

Object = dict[str, Any]
_QUOTAS = "resourcequotas"
_REQUIRED_AMOUNTS = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")


def charge(store: Store, resource: Resource, new: Object, old: Object | None, *, dry_run: bool) -> str | None:
    """Add an object to the used amounts of its quotas; return the reason to deny it if a quota is exceeded."""
    usage = quota.usage_of(resource.storage, new)
    before = quota.usage_of(resource.storage, old) if old is not None else {}
    charged: list[Object] = []
    for _, record in sorted(store.collection(_QUOTAS).by_namespace[new["metadata"]["namespace"]].items()):
        one = record.object()
        counted = [name for name in one.get("spec", {}).get("hard", {}) if _applies(resource, name, usage)]
        if not counted or not quota.is_counted(one, resource.storage, new):
            continue
        if resource.storage == "pods":
            missing = _missing_amounts(new["spec"], counted)
            if missing:
                return f"failed quota: {record.name}: must specify {missing}"
        hard, used = one.get("status", {}).get("hard", {}), one.get("status", {}).get("used", {})
        unknown = [name for name in counted if name not in hard or name not in used]
        if unknown:
            return f"status unknown for quota: {record.name}, resources: {','.join(sorted(unknown))}"
        counted_before = before if old is not None and quota.is_counted(one, resource.storage, old) else {}
        more = {name: usage.get(name, 0) - counted_before.get(name, 0) for name in counted}
        more = {name: amount for name, amount in more.items() if amount > 0}
        over = sorted(name for name in more if quantity.nano(used[name]) + more[name] > quantity.nano(hard[name]))
        if over:
            requested = ",".join(f"{name}={quota.format_amount(name, more[name])}" for name in over)
            shown, limited = (",".join(f"{name}={side[name]}" for name in over) for side in (used, hard))
            return f"exceeded quota: {record.name}, requested: {requested}, used: {shown}, limited: {limited}"
        if more:
            for name, amount in more.items():
                used[name] = quota.format_amount(name, quantity.nano(used[name]) + amount)
            charged.append(one)
    if not dry_run:
        for one in charged:
            store.put(_QUOTAS, one)
    return None


def _applies(resource: Resource, name: str, usage: quota.Usage) -> bool:
    return name in usage or (resource.storage == "pods" and name in _REQUIRED_AMOUNTS)


def _missing_amounts(spec: Object, counted: list[str]) -> str:
    """Return the containers without amounts that a quota requires."""
    if spec.get("resources"):
        return ""
    found = []
    for name in sorted(set(counted) & set(_REQUIRED_AMOUNTS)):
        side, _, plain = name.rpartition(".")
        lacking = sorted(
            one.get("name", "")
            for one in (*spec.get("containers", ()), *spec.get("initContainers", ()))
            if plain not in one.get("resources", {}).get(side or "requests", {})
        )
        if lacking:
            found.append(f"{name} for: {','.join(lacking)}")
    return "; ".join(found)
