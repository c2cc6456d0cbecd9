"""Values of table cells: short texts out of objects."""

import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any

Object = dict[str, Any]
NONE = "<none>"


def age(text: str | None) -> str:
    """How long ago, in at most two units."""
    if not text:
        return "<unknown>"
    try:
        return duration(time.time() - _seconds(text))
    except ValueError:
        return "<invalid>"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def duration(seconds: float) -> str:
    """A span of time in at most two units, as kubectl writes it."""
    total = int(seconds)
    if total < 0:
        return "0s"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if days < 2:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y"


def joined(values: Iterable[Any], none: str = NONE) -> str:
    """Values with commas between."""
    return ",".join(str(value) for value in values) or none


def selector(spec: Object | None) -> str:
    """A label selector on one line."""
    if not spec:
        return NONE
    parts = [f"{key}={value}" for key, value in sorted(spec.get("matchLabels", {}).items())]
    for term in spec.get("matchExpressions", ()):
        operator, key, values = term["operator"], term["key"], ",".join(term.get("values", ()))
        parts.append(
            {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}.get(operator, f"!{key}")
        )
    return joined(parts)


def plain_selector(labels: Object | None) -> str:
    """Equalities on one line."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def pod_status(pod: Object) -> str:
    """The word for what a pod is doing."""
    status = pod.get("status", {})
    word: str = status.get("reason") or status.get("phase", "Unknown")
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    for container in status.get("containerStatuses", ()):
        state = container.get("state", {})
        if state.get("waiting", {}).get("reason"):
            word = state["waiting"]["reason"]
        elif state.get("terminated", {}).get("reason"):
            word = state["terminated"]["reason"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return word


def ready_count(pod: Object) -> str:
    """Ready containers of all."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    # Init containers that stay count like the others.
    staying = {one["name"] for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"}
    ready = sum(1 for one in status.get("containerStatuses", ()) if one.get("ready"))
    ready += sum(1 for one in status.get("initContainerStatuses", ()) if one.get("ready") and one["name"] in staying)
    return f"{ready}/{len(spec.get('containers', ())) + len(staying)}"


def readiness_gates(pod: Object) -> str:
    """Gates that are open, of all."""
    gates = pod.get("spec", {}).get("readinessGates", ())
    if not gates:
        return NONE
    true = {one["type"] for one in pod.get("status", {}).get("conditions", ()) if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


def restarts(pod: Object) -> str:
    """How often containers started again."""
    return str(sum(one.get("restartCount", 0) for one in pod.get("status", {}).get("containerStatuses", ())))


def node_status(node: Object) -> str:
    """Ready or not, and whether new pods may come."""
    ready = next((one for one in node.get("status", {}).get("conditions", ()) if one.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")
    return word + (",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else "")


def node_roles(node: Object) -> str:
    """Roles from labels."""
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels", {})
    return joined(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def address(node: Object, type_: str) -> str:
    """An address of a node."""
    for one in node.get("status", {}).get("addresses", ()):
        if one.get("type") == type_:
            return str(one.get("address"))
    return NONE


def external_address(service: Object) -> str:
    """Where a service is reached from outside."""
    spec = service.get("spec", {})
    balanced = service.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    found = [one.get("ip") or one.get("hostname", "") for one in balanced] + spec.get("externalIPs", [])
    if not found and spec.get("type") == "LoadBalancer":
        return "<pending>"
    return joined(found, spec.get("externalName") or NONE)


def service_ports(service: Object) -> str:
    """Ports of a service."""
    return joined(
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in service.get("spec", {}).get("ports", ())
    )


def access_modes(modes: Iterable[str]) -> str:
    """Access modes as kubectl shortens them."""
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return ",".join(short.get(mode, mode) for mode in modes)


def job_status(job: Object) -> str:
    """Running, Complete, Failed or Suspended."""
    for condition in job.get("status", {}).get("conditions", ()):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed", "Suspended"):
            return str(condition["type"])
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def job_completions(job: Object) -> str:
    """Finished pods of those wanted."""
    done = job.get("status", {}).get("succeeded", 0)
    spec = job.get("spec", {})
    if "completions" in spec:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def last_schedule(cron_job: Object) -> str:
    """When a job was last begun."""
    last = cron_job.get("status", {}).get("lastScheduleTime")
    return age(last) if last else NONE


def job_duration(job: Object) -> str:
    """How long a job took, or has taken so far."""
    status = job.get("status", {})
    if not status.get("startTime"):
        return ""
    end = _seconds(status["completionTime"]) if status.get("completionTime") else time.time()
    return duration(end - _seconds(status["startTime"]))


def quota(obj: Object, *, limits: bool) -> str:
    """Used and allowed of what a quota bounds, requests or limits."""
    status = obj.get("status", {})
    allowed, used = status.get("hard", {}), status.get("used", {})
    names = [name for name in sorted(allowed) if name.startswith("limits.") is limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{allowed[name]}" for name in names)


def endpoints(obj: Object) -> str:
    """The first few addresses behind a service."""
    found = [
        f"{one.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets", ())
        for one in subset.get("addresses", ())
        for port in subset.get("ports", ())
    ]
    return _few(found)


def slice_ports(obj: Object) -> str:
    """Ports of an endpoint slice."""
    return _few([str(one.get("port", "*")) for one in obj.get("ports") or ()], "<unset>")


def slice_addresses(obj: Object) -> str:
    """The first few addresses of an endpoint slice."""
    return _few([address for one in obj.get("endpoints") or () for address in one.get("addresses", ())], "<unset>")


def _few(values: list[str], none: str = NONE) -> str:
    more = f" + {len(values) - 3} more..." if len(values) > 3 else ""
    return joined(values[:3], none) + more


def controller(obj: Object) -> str:
    """The kind and name of the owner that manages an object."""
    for owner in obj["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            group, slash, _ = owner["apiVersion"].partition("/")
            return f"{owner['kind'].lower()}{'.' + group if slash else ''}/{owner['name']}"
    return NONE


def event_object(event: Object) -> str:
    """What an event is about."""
    about = event["involvedObject"]
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def event_source(event: Object) -> str:
    """Who told of an event."""
    source = event.get("source", {})
    parts = [source.get("component", ""), source.get("host", "")]
    return ", ".join(part for part in parts if part) or event.get("reportingComponent", "")


def last_seen(event: Object) -> str:
    """When an event was last told."""
    return age(
        event.get("series", {}).get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )


def claim_of(volume: Object) -> str:
    """The claim a volume is bound to."""
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


def claim_state(claim: Object) -> str:
    """Where a device claim stands."""
    states = []
    if claim["metadata"].get("deletionTimestamp"):
        states.append("deleted")
    if claim.get("status", {}).get("allocation"):
        states.append("allocated")
        if claim["status"].get("reservedFor"):
            states.append("reserved")
    else:
        states.append("pending")
    return ",".join(states)


def certificate_state(request: Object) -> str:
    """Pending, or what was said of it."""
    status = request.get("status", {})
    told = [one.get("type", "") for one in status.get("conditions", ())]
    if status.get("certificate"):
        told.append("Issued")
    return joined(told, "Pending")


def subjects(binding: Object, kind: str) -> str:
    """Who a role is given to."""
    return ", ".join(
        f"{one['namespace']}/{one['name']}" if kind == "ServiceAccount" else one.get("name", "")
        for one in binding.get("subjects", ())
        if one.get("kind") == kind
    )


def scale_targets(autoscaler: Object) -> str:
    """What an autoscaler measures, and what it aims at."""
    told = []
    current = {
        one.get("resource", {}).get("name"): one for one in autoscaler.get("status", {}).get("currentMetrics") or ()
    }
    for metric in autoscaler.get("spec", {}).get("metrics", ()):
        source = metric.get("resource", {})
        aim = source.get("target", {})
        now = current.get(source.get("name"), {}).get("resource", {}).get("current", {})
        if "averageUtilization" in aim:
            told.append(f"{source['name']}: {_percent(now.get('averageUtilization'))}/{aim['averageUtilization']}%")
        elif source:
            told.append(f"{source.get('name')}: {now.get('averageValue', '<unknown>')}/{aim.get('averageValue', '')}")
        else:
            told.append("<unknown>")
    return _few(told)


def _percent(value: int | None) -> str:
    return "<unknown>" if value is None else f"{value}%"


def ingress_hosts(ingress: Object) -> str:
    """The hosts an Ingress routes."""
    return _few([one["host"] for one in ingress.get("spec", {}).get("rules", ()) if one.get("host")], "*")


def balanced(obj: Object) -> str:
    """Addresses of a load balancer."""
    found = obj.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    return joined((one.get("ip") or one.get("hostname", "") for one in found), "")


def class_parameters(ingress_class: Object) -> str:
    """Where the settings of a class are."""
    found = ingress_class.get("spec", {}).get("parameters")
    if not found:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def address_parent(address_: Object) -> str:
    """What an address belongs to."""
    parent = address_.get("spec", {}).get("parentRef", {})
    return "/".join(str(parent[key]) for key in ("group", "resource", "namespace", "name") if parent.get(key))


def requested_duration(request: Object) -> str:
    """How long a certificate is to last."""
    seconds = request.get("spec", {}).get("expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def availability(service: Object) -> str:
    """Return the status of the condition Available."""
    conditions = service.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == "Available"), "Unknown")


def group_policy(group: Object) -> str:
    """How the pods of a group are scheduled."""
    return "Gang" if group["spec"].get("schedulingPolicy", {}).get("gang") is not None else "Basic"


def group_status(group: Object) -> str:
    """Where a group of pods stands."""
    told = {one["type"]: one for one in group.get("status", {}).get("conditions", ())}
    if "DisruptionTarget" in told:
        return str(told["DisruptionTarget"].get("reason", ""))
    scheduled = told.get("PodGroupScheduled")
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
