"""The status of nodes and pods as written by simulated kubelets."""

import ipaddress
from typing import Any

from kubestow.api.timestamps import format_time
from kubestow.apiserver.kubelets.lifecycles import PodLifecycle, Run
from kubestow.apiserver.rules.pods import put_condition, set_condition
from kubestow.telemetry.build import KUBERNETES

Object = dict[str, Any]
_PODS_FROM = int(ipaddress.IPv4Address("10.0.0.1"))
_NODES_FROM = int(ipaddress.IPv4Address("172.16.0.1"))
_DEFAULT_CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class Addresses:
    """Allocates the addresses of nodes and pods."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}
        self._pods: dict[str, str] = {}
        self._free: list[str] = []

    def of_node(self, name: str) -> str:
        """Return the address of a node, allocated on first use."""
        if name not in self._nodes:
            self._nodes[name] = str(ipaddress.IPv4Address(_NODES_FROM + len(self._nodes)))
        return self._nodes[name]

    def of_pod(self, uid: str) -> str:
        """Return the address of a pod, allocated on first use."""
        if uid not in self._pods:
            fresh = str(ipaddress.IPv4Address(_PODS_FROM + len(self._pods)))
            self._pods[uid] = self._free.pop() if self._free else fresh
        return self._pods[uid]

    def release(self, uid: str) -> None:
        """Free the address of a deleted pod."""
        address = self._pods.pop(uid, None)
        if address is not None:
            self._free.append(address)

    def forget(self, name: str) -> None:
        """Drop the address of a deleted node."""
        self._nodes.pop(name, None)


def offer_extended(status: Object) -> None:
    """Make the full capacity of the extended resources of a node allocatable."""
    extended = {name: amount for name, amount in status.get("capacity", {}).items() if "/" in name}
    plain = {name: amount for name, amount in status.get("allocatable", {}).items() if "/" not in name}
    status["allocatable"] = plain | extended


def report_node(node: Object, address: str, now: str, problem: str) -> None:
    """Set the conditions of a node, and fields missing in its manifest; `problem` is the reason it is not ready."""
    status = node.setdefault("status", {})
    status.setdefault("capacity", dict(status.get("allocatable", _DEFAULT_CAPACITY)))
    status.setdefault("allocatable", dict(status["capacity"]))
    name = node["metadata"]["name"]
    status.setdefault("addresses", [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}])
    status.setdefault(
        "nodeInfo",
        {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "stand-in",
            "kernelVersion": "stand-in",
            "kubeProxyVersion": "",
            "kubeletVersion": f"v{KUBERNETES}-stand-in",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "stand-in",
            "systemUUID": "",
        },
    )
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    conditions: list[Object] = status.setdefault("conditions", [])
    present = {one["type"] for one in conditions}
    for type_, reason, message in _HEALTHY:
        if type_ not in present:
            _set(conditions, type_, "False", reason, message, now)
    for one in conditions:
        if one.get("status") == "Unknown" and one.get("reason") == "NodeStatusUnknown":
            reason, message = next((known[1:] for known in _HEALTHY if known[0] == one["type"]), ("", ""))
            one.update(status="False", reason=reason, message=message, lastTransitionTime=now)
    if problem:
        _set(conditions, "Ready", "False", "KubeletNotReady", problem, now)
    else:
        _set(conditions, "Ready", "True", "KubeletReady", "kubelet is posting ready status", now)


def _set(conditions: list[Object], type_: str, status: str, reason: str, message: str, now: str) -> None:
    new = {"type": type_, "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
    put_condition(conditions, new | {"reason": reason, "message": message})


def report_pod(pod: Object, life: PodLifecycle, addresses: Addresses, now: float) -> None:
    """Write the status of a pod."""
    spec, status = pod["spec"], pod.setdefault("status", {})
    host = addresses.of_node(spec["nodeName"])
    status |= {
        "phase": life.phase,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "startTime": status.get("startTime") or format_time(life.seen),
        "observedGeneration": pod["metadata"].get("generation", 1),
    }
    if life.started:
        address = host if spec.get("hostNetwork") else addresses.of_pod(pod["metadata"]["uid"])
        status |= {"podIP": address, "podIPs": [{"ip": address}]}
    if life.reason:
        status |= {"reason": life.reason, "message": life.message}
    runs = {run.name: run for run in life.runs}
    for name, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        if spec.get(containers):
            status[name] = [_container(one, pod, life, runs[one["name"]], now) for one in spec[containers]]
    _report_conditions(pod, life, now)


def _report_conditions(pod: Object, life: PodLifecycle, now: float) -> None:
    text = format_time(now)
    runs = [run for run in life.runs if run.kind != "init"]
    unready = [run.name for run in runs if not life.is_ready(run, now)]
    set_condition(pod, "PodReadyToStartContainers", str(life.started and not life.done), text)
    waiting = [run.name for run in life.runs if run.kind != "main" and not life.is_ready(run, now)]
    if not life.initialized:
        message = f"containers with incomplete status: [{' '.join(waiting)}]"
        set_condition(pod, "Initialized", "False", text, reason="ContainersNotInitialized", message=message)
    else:
        done = {"reason": "PodCompleted"} if life.phase == "Succeeded" else {}
        set_condition(pod, "Initialized", "True", text, **done)
    if life.done:
        why = {"reason": "PodCompleted" if life.phase == "Succeeded" else "PodFailed"}
        set_condition(pod, "Ready", "False", text, **why)
        set_condition(pod, "ContainersReady", "False", text, **why)
    else:
        why = {}
        if unready or not life.started:
            message = f"containers with unready status: [{' '.join(unready)}]"
            why = {"reason": "ContainersNotReady", "message": message}
        closed = {} if why else _closed_gate(pod)
        set_condition(pod, "Ready", str(not why and not closed), text, **(why or closed))
        set_condition(pod, "ContainersReady", str(not why), text, **why)
    set_condition(pod, "PodScheduled", "True", text)


def _closed_gate(pod: Object) -> dict[str, str]:
    """Return reason and message of the first readiness gate that is not True; empty if there is none."""
    have = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    for gate in pod["spec"].get("readinessGates", ()):
        name = gate["conditionType"]
        if have.get(name) != "True":
            message = f'the status of pod readiness gate "{name}" is not "True", but {have.get(name, "Unknown")}'
            if name not in have:
                message = f'corresponding condition of pod readiness gate "{name}" does not exist.'
            return {"reason": "ReadinessGatesNotReady", "message": message}
    return {}


def _container(container: Object, pod: Object, life: PodLifecycle, run: Run, now: float) -> Object:
    name, uid = container["name"], pod["metadata"]["uid"]
    identity = f"stand-in://{uid}/{name}/{run.restarts}" if run.started != float("inf") else ""
    if run.state == "running":
        state: Object = {"running": {"startedAt": format_time(run.started)}}
    elif run.state == "terminated":
        state = {"terminated": _ended((run.started, run.finished, run.code), identity)}
    elif run.restart_at != float("inf"):
        where = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({uid})"
        wait = int(run.restart_at - run.last[1]) if run.last else 0
        message = f"back-off {_go_duration(wait)} restarting failed container={name} pod={where}"
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    else:
        state = {"waiting": {"reason": "ContainerCreating" if life.initialized else "PodInitializing"}}
    status: Object = {
        "name": name,
        "image": container.get("image", ""),
        "imageID": "",
        "ready": life.is_ready(run, now),
        "started": run.state == "running",
        "restartCount": run.restarts,
        "lastState": {"terminated": _ended(run.last, identity)} if run.last else {},
        "state": state,
    }
    if identity:
        status["containerID"] = identity
    if name in life.allocated:
        status["resources"] = life.allocated[name]
        status["allocatedResources"] = life.allocated[name].get("requests", {})
    return status


def _ended(run: tuple[float, float, int], identity: str) -> Object:
    started, finished, code = run
    begun = started if started != float("inf") else finished
    return {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": format_time(begun),
        "finishedAt": format_time(finished),
        "containerID": identity,
    }


def _go_duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
