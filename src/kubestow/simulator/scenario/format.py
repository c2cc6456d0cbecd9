"""The fields of a Scenario. Durations are seconds, or text as in `1h30m` and `200ms`; they are checked when read."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from kubestow.apiserver.kubelets.description import Group
from kubestow.config.durations import Duration
from kubestow.simulator.settings import MAX_NODES, MAX_PODS

API_VERSION, KIND = "kubestow.dev/v1", "Scenario"

Span = str | int | float
"""A duration."""
_LONGEST = 200 * 366 * 86_400.0
Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Object = dict[str, Any]


def seconds(span: Span) -> float:
    """A duration in seconds; raises ValueError."""
    found = Duration.parse(span).seconds if isinstance(span, str) else float(span)
    if found < 0:
        raise ValueError(f"{span} is negative; time does not go back")
    if not found < _LONGEST:
        raise ValueError(f"{span} is more than 200 years")
    return found


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Latency(_Strict):
    """As in settings.Latencies."""

    request: Span = 0.005
    watch: Span = 0.005


class PodDefaults(_Strict):
    """How long pods take that do not say so themselves."""

    start: Span = 0.5
    run: Span = 300
    """For pods that are meant to end."""
    stop: Span = 0.5


class Uniform(_Strict):
    """Any duration between two is as likely as any other."""

    low: Span
    high: Span


class Lognormal(_Strict):
    """Most are about the median, a few take far longer."""

    median: Span
    sigma: Annotated[float, Meta(ge=0, le=100)]


class Distribution(_Strict):
    """Durations drawn by chance; one of these."""

    exponential: Span | None = None
    """The mean."""
    uniform: Uniform | None = None
    lognormal: Lognormal | None = None
    choice: Annotated[list[Span], Meta(min_length=1)] | None = None


class Poisson(_Strict):
    """Arrivals that do not know of each other."""

    every: Span
    """Seconds between two, on average."""


class Arrival(_Strict, kw_only=True):
    """Objects that come as time passes: `pod` or `object`, and `times`, `poisson` or `trace`."""

    name: str
    """What they are called, with a number behind it."""
    namespace: str = "default"
    pod: Object | None = None
    """Metadata and spec of a pod; its restartPolicy is Never if it does not say."""
    object: Object | None = None
    """Any other manifest, such as a Job; `run` does not apply to it."""
    times: Annotated[list[Span], Meta(min_length=1)] | None = None
    poisson: Poisson | None = None
    trace: str | None = None
    """A CSV file with a column `at`, and `run`, `cpu`, `memory` if they differ from the pod's."""
    run: Span | Distribution | None = None
    begin: Span = 0
    until: Span | None = None
    count: AtLeastOne | None = None
    """At most so many."""


class Nodes(_Strict):
    """Which nodes: by name, by label, or so many of all, chosen by chance."""

    names: Annotated[list[str], Meta(min_length=1)] | None = None
    labels: dict[str, str] | None = None
    count: AtLeastOne | None = None


class Scale(_Strict):
    """Another number of replicas."""

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
    """Something that happens; one of these, at a time."""

    at: Span
    fail: Nodes | None = None
    """Their kubelets fall silent."""
    drain: Nodes | None = None
    """They are cordoned, and their pods evicted as budgets allow."""
    cordon: Nodes | None = None
    uncordon: Nodes | None = None
    remove: Nodes | None = None
    """They are gone, objects and all."""
    scale: Scale | None = None
    apply: list[Object] | None = None
    delete: Target | None = None
    lasts: Span | None = None
    """After so long, nodes that failed are back, and those that were drained or cordoned take pods again."""


class NodeGroup(_Strict, kw_only=True):
    """Nodes that come when pods wait for them and go when nobody needs them."""

    name: str
    template: Group
    min: Count = 0
    max: Annotated[int, Meta(ge=0, le=MAX_NODES)] = 10
    delay: Span = 120
    """From the wish for a node until it is there."""
    idle: Span = 600
    """For so long a node is empty before it is removed."""


class Spec(_Strict):
    """What is simulated."""

    duration: Span | None = None
    """How long; None: until nothing happens by itself any more, at most an hour after the last event."""
    seed: Count = 0
    sample: Span | None = None
    """How often utilisation and queues are looked at; None: every minute, of what takes days seldom enough."""
    latencies: Latency = msgspec.field(default_factory=Latency)
    pods: PodDefaults = msgspec.field(default_factory=PodDefaults)
    include: list[str] = []
    """Files of objects, beside this one."""
    nodes: list[Group] = []
    nodeGroups: list[NodeGroup] = []
    arrivals: list[Arrival] = []
    events: list[Event] = []


class Document(_Strict):
    """A Scenario as it is written."""

    apiVersion: str
    kind: str
    spec: Spec
    metadata: Object = {}
