"""Defaults of pod specs, in pods and in templates of workloads; and the QoS class."""

from typing import Any

from kubestow.apiserver.rules.defaults import set_missing

_DEFAULTS: dict[str, Any] = {
    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "securityContext": {},
}  # fmt: skip
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_pod_spec(spec: dict[str, Any]) -> None:
    """Set the defaults of a pod spec."""
    set_missing(spec, _DEFAULTS)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    host_network = spec.get("hostNetwork", False)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        _default_container(container, host_network)
    for volume in spec.get("volumes", ()):
        _default_volume(volume)


def _default_container(container: dict[str, Any], host_network: bool) -> None:
    image: str = container.get("image", "")
    if not container.get("imagePullPolicy"):
        _, _, tag = image.rpartition("/")[2].partition(":")
        container["imagePullPolicy"] = "Always" if tag in ("", "latest") and "@" not in image else "IfNotPresent"
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.get("resources")
    if resources is None:
        container["resources"] = {}
    else:
        default_requests(resources)
    for port in container.get("ports", ()):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port.get("containerPort", 0)
    for name in _PROBES:
        probe = container.get(name)
        if probe is not None:
            for key, value in _PROBE_DEFAULTS.items():
                if not probe.get(key):
                    probe[key] = value
            _default_request(probe)
    for hook in container.get("lifecycle", {}).values():
        if isinstance(hook, dict):
            _default_request(hook)
    for variable in container.get("env", ()):
        _default_field_reference(variable.get("valueFrom", {}))


def _default_request(action: dict[str, Any]) -> None:
    """Set the defaults of a probe or hook: path / over HTTP, and an empty gRPC service."""
    request = action.get("httpGet")
    if request is not None:
        if not request.get("path"):
            request["path"] = "/"
        if not request.get("scheme"):
            request["scheme"] = "HTTP"
    if "grpc" in action:
        action["grpc"].setdefault("service", "")


def _default_field_reference(holder: dict[str, Any]) -> None:
    reference = holder.get("fieldRef")
    if reference is not None and not reference.get("apiVersion"):
        reference["apiVersion"] = "v1"


def default_requests(resources: dict[str, Any]) -> None:
    """Set missing requests to the limits."""
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests")
        if requests is None:
            resources["requests"] = dict(limits)
        else:
            for name, amount in limits.items():
                requests.setdefault(name, amount)


def _default_volume(volume: dict[str, Any]) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", 420)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    for part in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in part:
            part["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        for item in part.get("downwardAPI", {}).get("items", ()):
            _default_field_reference(item)
    for item in volume.get("downwardAPI", {}).get("items", ()):
        _default_field_reference(item)


def quality_of_service(spec: dict[str, Any]) -> str:
    """Return the QoS class: Guaranteed if all containers have CPU and memory limits equal to their requests; BestEffort
    without requests and limits, else Burstable."""
    has_amounts = False
    guaranteed = True
    whole = spec.get("resources")
    parts = [whole] if whole else [
        container.get("resources", {}) for kind in ("containers", "initContainers") for container in spec.get(kind, ())
    ]  # fmt: skip
    for resources in parts:
        requests = resources.get("requests", {})
        limits = resources.get("limits", {})
        for name in ("cpu", "memory"):
            request = requests.get(name)
            limit = limits.get(name)
            if request is not None or limit is not None:
                has_amounts = True
            if limit is None or request != limit:
                guaranteed = False
    if not has_amounts:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
