"""The fields of a Scenario. Durations are seconds, or text such as `1h30m` and `200ms`; they are checked when read."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kubestow.apiserver.kubelets.description import Group
from kubestow.config.durations import Duration
from kubestow.simulator.settings import MAX_NODES, MAX_PODS

API_VERSION, KIND = "kubestow.dev/v1", "Scenario"

Span = str | int | float
"""A duration: seconds or text."""
_LONGEST = 200 * 366 * 86_400.0
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Object = dict[str, Any]


def seconds(span: Span) -> float:
    """Return a duration in seconds; raises ValueError."""
    found = Duration.parse(span).seconds if isinstance(span, str) else float(span)
    if found < 0:
        raise ValueError(f"{span} is negative")
    if not found < _LONGEST:
        raise ValueError(f"{span} is more than 200 years")
    return found


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Latency(_Strict):
    """The fields of settings.Latencies."""

    request: Span = 0.005
    watch: Span = 0.005


class PodDefaults(_Strict):
    """Default durations of pods."""

    start: Span = 0.5
    run: Span = 300
    """Only for pods that run to completion."""
    stop: Span = 0.5


class Uniform(_Strict):
    """A duration drawn uniformly between two."""

    low: Span
    high: Span


class Lognormal(_Strict):
    """Most durations are close to the median, a few are far longer."""

    median: Span
    sigma: Annotated[float, Meta(ge=0, le=100)]


class Distribution(_Strict):
    """Random durations; exactly one field is set."""

    exponential: Span | None = None
    """The mean."""
    uniform: Uniform | None = None
    lognormal: Lognormal | None = None
    choice: Annotated[list[Span], Meta(min_length=1)] | None = None


class Poisson(_Strict):
    """Independent random arrivals."""

    every: Span
    """Mean time between two arrivals."""


class Arrival(_Strict, kw_only=True):
    """Objects that arrive over time: `pod` or `object`, and `times`, `poisson` or `trace`."""

    name: str
    """Prefix of the objects' names; a number is appended."""
    namespace: str = "default"
    pod: Object | None = None
    """Metadata and spec of a pod; its default restartPolicy is Never."""
    object: Object | None = None
    """A manifest of another kind, such as Job; `run` does not apply to it."""
    times: Annotated[list[Span], Meta(min_length=1)] | None = None
    poisson: Poisson | None = None
    trace: str | None = None
    """A CSV file with a column `at`, and optional columns `run`, `cpu`, `memory` that replace the pod's."""
    run: Span | Distribution | None = None
    begin: Span = 0
    until: Span | None = None
    count: AtLeastOne | None = None
    """Maximum number of objects."""


class Nodes(_Strict):
    """Selects nodes by name or by label, or a number of random nodes."""

    names: Annotated[list[str], Meta(min_length=1)] | None = None
    labels: dict[str, str] | None = None
    count: AtLeastOne | None = None


class Scale(_Strict):
    """Changes the number of replicas."""

    kind: str
    name: str
    replicas: Annotated[int, Meta(ge=0, le=MAX_PODS)]
    namespace: str = "default"


class Target(_Strict):
    """An object to delete."""

    kind: str
    name: str
    namespace: str = "default"


class Event(_Strict, kw_only=True):
    """An event; exactly one of its actions is set."""

    at: Span
    fail: Nodes | None = None
    """The kubelets stop reporting."""
    drain: Nodes | None = None
    """The nodes are cordoned, and their pods are evicted as disruption budgets allow."""
    cordon: Nodes | None = None
    uncordon: Nodes | None = None
    remove: Nodes | None = None
    """The nodes are deleted."""
    scale: Scale | None = None
    apply: list[Object] | None = None
    delete: Target | None = None
    lasts: Span | None = None
    """Time after which failed nodes recover, and drained or cordoned nodes become schedulable."""


class NodeGroup(_Strict, kw_only=True):
    """Nodes that are added for pending pods and removed when they are empty."""

    name: str
    template: Group
    min: Count = 0
    max: Annotated[int, Meta(ge=0, le=MAX_NODES)] = 10
    delay: Span = 120
    """Time from the order of a node to its addition."""
    idle: Span = 600
    """Time that a node is empty before it is removed."""


class Spec(_Strict):
    """The contents of a Scenario."""

    duration: Span | None = None
    """None: until no work is pending, at most an hour after the last event."""
    seed: Count = 0
    sample: Span | None = None
    """Interval of samples. None: every minute, and longer for long simulations."""
    latencies: Latency = msgspec.field(default_factory=Latency)
    pods: PodDefaults = msgspec.field(default_factory=PodDefaults)
    include: list[str] = []
    """Additional files of objects."""
    nodes: list[Group] = []
    nodeGroups: list[NodeGroup] = []
    arrivals: list[Arrival] = []
    events: list[Event] = []


class Document(_Strict):
    """A Scenario document."""

    apiVersion: str
    kind: str
    spec: Spec
    metadata: Object = {}
