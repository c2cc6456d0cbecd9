"""Table cells: each function formats a part of an object as short text, as kubectl does."""

import time
from collections.abc import Iterable
from typing import Any

from kubestow.api.conditions import DISRUPTION_TARGET, POD_GROUP_SCHEDULED
from kubestow.api.timestamps import parse_time

Object = dict[str, Any]
NONE = "<none>"


def age(text: str | None) -> str:
    """Return the time since a timestamp, in at most two units."""
    if not text:
        return "<unknown>"
    try:
        return duration(time.time() - parse_time(text))
    except ValueError:
        return "<invalid>"


def duration(seconds: float) -> str:
    """Format a duration in at most two units."""
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
    """Join values with commas; `none` if there are none."""
    return ",".join(str(value) for value in values) or none


def selector(spec: Object | None) -> str:
    """Format a label selector."""
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
    """Format the labels of a selector that consists of equalities."""
    return joined(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def pod_status(pod: Object) -> str:
    """Return the status of a pod: its phase, or a more specific reason."""
    status = pod.get("status", {})
    text: str = status.get("reason") or status.get("phase", "Unknown")
    for condition in status.get("conditions", ()):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            text = "SchedulingGated"
    for container in status.get("containerStatuses", ()):
        state = container.get("state", {})
        if state.get("waiting", {}).get("reason"):
            text = state["waiting"]["reason"]
        elif state.get("terminated", {}).get("reason"):
            text = state["terminated"]["reason"]
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return text


def ready_count(pod: Object) -> str:
    """Return the number of ready containers and of all containers, such as `1/2`."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    # Sidecars (init containers with restart policy Always) count, too.
    sidecars = {one["name"] for one in spec.get("initContainers", ()) if one.get("restartPolicy") == "Always"}
    ready = sum(1 for one in status.get("containerStatuses", ()) if one.get("ready"))
    ready += sum(1 for one in status.get("initContainerStatuses", ()) if one.get("ready") and one["name"] in sidecars)
    return f"{ready}/{len(spec.get('containers', ())) + len(sidecars)}"


def readiness_gates(pod: Object) -> str:
    """Return the number of readiness gates that are true, and of all gates."""
    gates = pod.get("spec", {}).get("readinessGates", ())
    if not gates:
        return NONE
    true = {one["type"] for one in pod.get("status", {}).get("conditions", ()) if one.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate.get('conditionType') in true)}/{len(gates)}"


def restarts(pod: Object) -> str:
    """Return the number of container restarts."""
    return str(sum(one.get("restartCount", 0) for one in pod.get("status", {}).get("containerStatuses", ())))


def node_status(node: Object) -> str:
    """Return whether a node is ready, and whether scheduling is disabled."""
    ready = next((one for one in node.get("status", {}).get("conditions", ()) if one.get("type") == "Ready"), None)
    text = "Unknown" if ready is None else ("Ready" if ready.get("status") == "True" else "NotReady")
    return text + (",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else "")


def node_roles(node: Object) -> str:
    """Return the roles of a node, from its labels."""
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels", {})
    return joined(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix)))


def address(node: Object, type_: str) -> str:
    """Return the address of a node of one type."""
    for one in node.get("status", {}).get("addresses", ()):
        if one.get("type") == type_:
            return str(one.get("address"))
    return NONE


def external_address(service: Object) -> str:
    """Return the external addresses of a service."""
    spec = service.get("spec", {})
    balanced = service.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    found = [one.get("ip") or one.get("hostname", "") for one in balanced] + spec.get("externalIPs", [])
    if not found and spec.get("type") == "LoadBalancer":
        return "<pending>"
    return joined(found, spec.get("externalName") or NONE)


def service_ports(service: Object) -> str:
    """Return the ports of a service."""
    return joined(
        f"{port.get('port')}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in service.get("spec", {}).get("ports", ())
    )


def access_modes(modes: Iterable[str]) -> str:
    """Return the abbreviations of access modes."""
    short = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
    return ",".join(short.get(mode, mode) for mode in modes)


def job_status(job: Object) -> str:
    """Return the status of a Job: Complete, Failed, Suspended, Terminating or Running."""
    for condition in job.get("status", {}).get("conditions", ()):
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed", "Suspended"):
            return str(condition["type"])
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def job_completions(job: Object) -> str:
    """Return the number of succeeded pods, and the desired number."""
    done = job.get("status", {}).get("succeeded", 0)
    spec = job.get("spec", {})
    if "completions" in spec:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def last_schedule(cron_job: Object) -> str:
    """Return the time since a CronJob last created a Job."""
    last = cron_job.get("status", {}).get("lastScheduleTime")
    return age(last) if last else NONE


def job_duration(job: Object) -> str:
    """Return the duration of a Job, until now if it has not ended."""
    status = job.get("status", {})
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else time.time()
    return duration(end - parse_time(status["startTime"]))


def quota(obj: Object, *, limits: bool) -> str:
    """Return usage and limit of each resource of a quota: those of `limits.`, or all others."""
    status = obj.get("status", {})
    allowed, used = status.get("hard", {}), status.get("used", {})
    names = [name for name in sorted(allowed) if name.startswith("limits.") is limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{allowed[name]}" for name in names)


def endpoints(obj: Object) -> str:
    """Return the first addresses of an Endpoints object."""
    found = [
        f"{one.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets", ())
        for one in subset.get("addresses", ())
        for port in subset.get("ports", ())
    ]
    return _few(found)


def slice_ports(obj: Object) -> str:
    """Return the first ports of an endpoint slice."""
    return _few([str(one.get("port", "*")) for one in obj.get("ports") or ()], "<unset>")


def slice_addresses(obj: Object) -> str:
    """Return the first addresses of an endpoint slice."""
    return _few([address for one in obj.get("endpoints") or () for address in one.get("addresses", ())], "<unset>")


def _few(values: list[str], none: str = NONE) -> str:
    more = f" + {len(values) - 3} more..." if len(values) > 3 else ""
    return joined(values[:3], none) + more


def controller(obj: Object) -> str:
    """Return the kind and name of the controller of an object."""
    for owner in obj["metadata"].get("ownerReferences", ()):
        if owner.get("controller"):
            group, slash, _ = owner["apiVersion"].partition("/")
            return f"{owner['kind'].lower()}{'.' + group if slash else ''}/{owner['name']}"
    return NONE


def event_object(event: Object) -> str:
    """Return the kind and name of the object of an event."""
    about = event["involvedObject"]
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def event_source(event: Object) -> str:
    """Return the component and host that reported an event."""
    source = event.get("source", {})
    parts = [source.get("component", ""), source.get("host", "")]
    return ", ".join(part for part in parts if part) or event.get("reportingComponent", "")


def last_seen(event: Object) -> str:
    """Return the time since an event was last reported."""
    return age(
        event.get("series", {}).get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
    )


def claim_of(volume: Object) -> str:
    """Return the claim that a volume is bound to."""
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace')}/{claim.get('name')}" if claim else ""


def claim_state(claim: Object) -> str:
    """Return the state of a resource claim: deleted, allocated, reserved, pending."""
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
    """Return the conditions of a certificate request, Pending if there are none."""
    status = request.get("status", {})
    states = [one.get("type", "") for one in status.get("conditions", ())]
    if status.get("certificate"):
        states.append("Issued")
    return joined(states, "Pending")


def subjects(binding: Object, kind: str) -> str:
    """Return the subjects of one kind in a role binding."""
    return ", ".join(
        f"{one.get('namespace', '')}/{one.get('name', '')}" if kind == "ServiceAccount" else one.get("name", "")
        for one in binding.get("subjects", ())
        if one.get("kind") == kind
    )


def scale_targets(autoscaler: Object) -> str:
    """Return the current and target values of the metrics of an autoscaler."""
    found = []
    current = {
        one.get("resource", {}).get("name"): one for one in autoscaler.get("status", {}).get("currentMetrics") or ()
    }
    for metric in autoscaler.get("spec", {}).get("metrics", ()):
        source = metric.get("resource", {})
        goal = source.get("target", {})
        now = current.get(source.get("name"), {}).get("resource", {}).get("current", {})
        if "averageUtilization" in goal:
            used = f"{now['averageUtilization']}%" if "averageUtilization" in now else "<unknown>"
            found.append(f"{source['name']}: {used}/{goal['averageUtilization']}%")
        elif source:
            found.append(f"{source.get('name')}: {now.get('averageValue', '<unknown>')}/{goal.get('averageValue', '')}")
        else:
            found.append("<unknown>")
    return _few(found)


def ingress_hosts(ingress: Object) -> str:
    """Return the first hosts of an Ingress."""
    return _few([one["host"] for one in ingress.get("spec", {}).get("rules", ()) if one.get("host")], "*")


def balanced(obj: Object) -> str:
    """Return the addresses of a load balancer."""
    found = obj.get("status", {}).get("loadBalancer", {}).get("ingress", ())
    return joined((one.get("ip") or one.get("hostname", "") for one in found), "")


def class_parameters(ingress_class: Object) -> str:
    """Return the reference to the parameters of an IngressClass."""
    found = ingress_class.get("spec", {}).get("parameters")
    if not found:
        return NONE
    group = f".{found['apiGroup']}" if found.get("apiGroup") else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


def address_parent(address_: Object) -> str:
    """Return the parent reference of an IPAddress."""
    parent = address_.get("spec", {}).get("parentRef", {})
    return "/".join(str(parent[key]) for key in ("group", "resource", "namespace", "name") if parent.get(key))


def requested_duration(request: Object) -> str:
    """Return the requested duration of a certificate."""
    seconds = request.get("spec", {}).get("expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def availability(service: Object) -> str:
    """Return the status of the condition Available."""
    conditions = service.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == "Available"), "Unknown")


def group_policy(group: Object) -> str:
    """Return the scheduling policy of a pod group."""
    return "Gang" if group["spec"].get("schedulingPolicy", {}).get("gang") is not None else "Basic"


def group_status(group: Object) -> str:
    """Return the status of a pod group: a disruption reason, Scheduled, Unschedulable or Pending."""
    conditions = {one["type"]: one for one in group.get("status", {}).get("conditions", ())}
    if DISRUPTION_TARGET in conditions:
        return str(conditions[DISRUPTION_TARGET].get("reason", ""))
    scheduled = conditions.get(POD_GROUP_SCHEDULED)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
