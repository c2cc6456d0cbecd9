"""The checks of `kubestow plugin check`: a plugin is run in the scheduler on generated clusters.

Each check is a function that returns a line on success, or raises `Found` with the problem.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from kubestow import config
from kubestow.api.files.errors import ObjectsError
from kubestow.cli.cluster_files import cluster_in
from kubestow.config.configuration import PluginConfig
from kubestow.insight.explain.world import ExplainError, Setup, World
from kubestow.plugin.loading import Loaded
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.cycle.outcome import Failed, Placed
from kubestow.scheduler.cycle.scheduling import SchedulingCycles, choose_at_random
from kubestow.scheduler.framework.args import ArgsError, decode_args
from kubestow.scheduler.framework.caller import SLOW_SECONDS, place_of
from kubestow.scheduler.framework.declarations import watches_of
from kubestow.scheduler.framework.profile import Profile, ProfileError
from kubestow.scheduler.framework.results import SKIP, Code, Narrowed, PluginError, Rejection, Skip, with_place
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.simulator.in_memory.harness import configured
from kubestow.testing import make_node, make_pod
from kubestow.testing.agreement import check_forms, compare_forms_in

NODES = 5_000
_FAST = ("filter_rows", "score_rows", "row_rejection", "row_score", "passing_rows", "sign")
_LONG = "x" * 63
_VECTOR_FORM = "docs/reference/plugin-api.md#vector-form-all-nodes-at-once"
_COST_SECONDS, _SLOW_SECONDS = 0.2, 2.0
"""How long a plugin is measured; a slow one until it has been called three times, or the longer time has passed."""


class Found(Exception):  # noqa: N818 (it is about the plugin, which works or does not)
    """A problem of the plugin."""


class _OutOfTime(KeyboardInterrupt):
    """Ends a call of a plugin like Ctrl-C: plugins and the framework do not treat it as an error of the plugin."""


@contextmanager
def time_limit(seconds: float, file: str) -> Iterator[None]:
    """Raise Found if the block takes longer, with the method and line of the plugin's file that was running."""

    def stop(_number: int, frame: FrameType | None) -> None:
        raise _OutOfTime(_place(frame, file))

    previous = signal.signal(signal.SIGALRM, stop)
    # Repeated, since a plugin may catch all exceptions.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    except _OutOfTime as stopped:
        raise Found(f"takes longer than {seconds:g} s{stopped}; --timeout allows more") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _place(frame: FrameType | None, file: str) -> str:
    """Return the method that the scheduler called and the line it has reached; empty outside of the plugin's file."""
    own = []
    while frame is not None:
        if os.path.abspath(frame.f_code.co_filename) == os.path.abspath(file):
            own.append(frame)
        frame = frame.f_back
    return f", in {own[-1].f_code.co_name} ({file}:{own[0].f_lineno})" if own else ""


class Cost(NamedTuple):
    """The time of a plugin per pod when all nodes are evaluated."""

    plugin: str
    form: str
    micros: float
    skips: bool = False
    """Whether its PreFilter skips the pod, so that its filter is not called."""

    @property
    def advice(self) -> str:
        """What to do about a plugin that takes too long; empty for a fast one."""
        if self.micros < SLOW_SECONDS * 1e6:
            return ""
        cost = f"{self.plugin} takes {self.micros / 1000:,.0f} ms per pod at {NODES:,} nodes"
        if self.form == "vector":
            return f"{cost}: every pod waits for it"
        return f"{cost}, node by node: filter_rows and score_rows evaluate all nodes at once ({_VECTOR_FORM})"


def check_args(loaded: Loaded, args: Any) -> str:
    """Check that the constructor accepts the arguments."""
    try:
        loaded.plugin(decode_args(loaded.plugin, args), offline_handle(Cluster()))
    except ArgsError as error:
        raise Found(str(error)) from None
    except Exception as error:
        raise Found(_raised("its constructor raises", error)) from error
    return f"accepts {'the arguments of pluginConfig' if args else 'its default arguments'}"


def _raised(when: str, error: Exception) -> str:
    return with_place(f"{when} {type(error).__name__}: {error}", place_of(error))


def read_objects(loaded: Loaded, files: tuple[str, ...]) -> tuple[Cluster, list[PodInfo]]:
    """Return a cluster with the objects of files, those of the plugin's kinds included, and the pods without a node."""
    try:
        objects = cluster_in(files, declared=[watched.kind for watched in watches_of(loaded.plugin)])
        world = World(Setup(config.default()), (), time.time())
        for obj in objects:
            world.add(obj)
    except ObjectsError as error:
        raise Found(str(error)) from None
    except ExplainError as error:
        raise Found(f"{', '.join(files)}: {error}") from None
    if not world.pending or not world.cluster.nodes.count:
        raise Found(f"{', '.join(files)}: need nodes, and a pod without a node to try")
    return world.cluster, list(map(PodInfo, world.pending.values()))


def check_agreement(loaded: Loaded, args: Any, files: tuple[str, ...] = ()) -> str:
    """Check that fast forms return the results of plain forms."""
    if not any(hasattr(loaded.plugin, method) for method in _FAST):
        return "has the plain form only: nothing to compare"
    where = ", ".join(files) or "random clusters"
    decoded = decode_args(loaded.plugin, args)
    try:
        if files:
            cluster, pods = read_objects(loaded, files)
            number = compare_forms_in(cluster, loaded.plugin, decoded, pods, random.Random(0))
        else:
            number = check_forms(loaded.plugin, decoded)
    except Found:
        raise
    except AssertionError as error:
        if "no two forms" in str(error):
            return "nothing to compare: it has one form only, or skips every generated pod"
        raise Found(str(error)) from None
    except Exception as error:
        raise Found(_raised(f"on {where} it raises", error)) from error
    return f"forms agree on {where} ({number} results compared)"


def check_odd_objects(loaded: Loaded, args: Any) -> str:
    """Check that pods and nodes with missing or absurd fields cause no failure."""
    cluster = Cluster()
    for node in _odd_nodes():
        cluster.set_node(node)
    profile = profile_with(loaded, args, cluster)
    cycles = SchedulingCycles(cluster, Nominator(), choose_at_random(random.Random(0)))
    pods = list(_odd_pods())
    for pod in pods:
        outcome = cycles.run(profile, PodInfo(pod))
        if isinstance(outcome, Failed) and outcome.code is Code.ERROR:
            raise Found(f"fails for pod {pod.metadata.name}: {outcome.located_message}")
        if isinstance(outcome, Placed):
            cycles.unreserve(profile, outcome)
    return f"handles {len(pods)} unusual pods on unusual nodes"


def costs(loaded: Loaded, args: Any, files: tuple[str, ...] = ()) -> list[Cost]:
    """Return the costs of the plugin and of the default ones, most expensive first.

    Nodes of `files` are repeated, under other names; the pod is the first that the plugin does not skip.
    """
    if files:
        cluster, pods = read_objects(loaded, files)
        nodes = [node for node in cluster.nodes.nodes if node is not None]
        for number in range(len(nodes), NODES):
            node = nodes[number % len(nodes)]
            cluster.set_node(replace(node, metadata=replace(node.metadata, name=f"{node.metadata.name}-{number}")))
    else:
        cluster = Cluster()
        for number in range(NODES):
            labels = {"pool": f"{number % 7}"}
            cluster.set_node(make_node(f"n{number}", cpu="64", zone=f"zone-{number % 3}", labels=labels))
        pods = [PodInfo(make_pod("p", cpu="100m", memory="200Mi", labels={"app": "web"}))]
    profile = profile_with(loaded, args, cluster)
    own = next((hook for hook in profile.pre_filter if hook.name == loaded.name), None)
    names = dict.fromkeys(hook.name for hook in (*profile.pre_filter, *profile.filter, *profile.score))
    try:
        pod = next((one for one in pods if own is None or profile.caller.call(own, one) is not SKIP), pods[0])
        found = [_cost(profile, name, pod, cluster) for name in names]
    except PluginError as error:
        raise Found(f"fails for a pod at {NODES:,} nodes: {error.located}") from None
    return sorted((cost for cost in found if cost.micros), key=lambda cost: -cost.micros)


def profile_with(loaded: Loaded, args: Any, cluster: Cluster) -> Profile:
    """Return the default profile with the plugin. Raises Found."""
    registry = in_tree_registry()
    registry.register(loaded.name, loaded.plugin)
    (profile,) = configured(None, [loaded.plugin], config.Features()).profiles
    given = (PluginConfig(loaded.name, args),) if args else ()
    changed = replace(profile, pluginConfig=(*profile.pluginConfig, *given))
    try:
        return Profile(changed, registry, offline_handle(cluster), lambda: 0.0)
    except ProfileError as error:
        raise Found(str(error)) from None
    except PluginError as error:
        raise Found(error.located) from None


def _cost(profile: Profile, name: str, pod: PodInfo, cluster: Cluster) -> Cost:
    points = (profile.pre_filter, profile.filter, profile.pre_score, profile.score)
    hooks = {hook.point: hook for of_point in points for hook in of_point if hook.name == name}
    call, table, rows = profile.caller.call, cluster.nodes, np.arange(cluster.nodes.size)

    def run() -> bool:
        state: Any = None
        skips = False
        if "PreFilter" in hooks:
            state = call(hooks["PreFilter"], pod)
            skips = state is SKIP and "Filter" in hooks
        if isinstance(state, Narrowed):
            state = state.state
        if "Filter" in hooks and state is not SKIP and not isinstance(state, Rejection):
            call(hooks["Filter"], state, pod, table, rows)
        if "PreScore" in hooks:
            state = call(hooks["PreScore"], pod, table, rows)
        elif isinstance(state, Skip):
            state = None
        if "Score" in hooks and not isinstance(state, Skip):
            scores = call(hooks["Score"], state, pod, table, rows)
            if hooks["Score"].normalize is not None:
                call(hooks["Score"].normalize, state, pod, table, rows, scores)
        return skips

    skips = run()
    best, rounds, begin = float("inf"), 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < _COST_SECONDS or (rounds < 3 and elapsed < _SLOW_SECONDS):
        run()
        best = min(best, time.perf_counter() - begin - elapsed)
        rounds += 1
    plain = any(hook.method in ("filter", "score") for hook in hooks.values())
    return Cost(name, "plain" if plain else "vector", best * 1e6, skips)


def _odd_nodes() -> Iterator[Any]:
    yield make_node("bare", cpu="0", memory="0", pods=0)
    yield make_node("many-labels", labels={f"example.com/{number}": _LONG for number in range(1_000)})
    yield make_node("tainted", taints=[f"t{number}:NoSchedule" for number in range(20)], unschedulable=True)
    yield make_node("huge", cpu=str(2**53), memory="9007199254740992", resources={"example.com/odd": 2**62})
    yield make_node("words", labels={"cost": "not a number", "zone": "", "size": "-1"})
    yield make_node("plain", cpu="1000", memory="1Ti", zone="zone-a")


def _odd_pods() -> Iterator[Any]:
    yield make_pod("plain")
    yield make_pod("nothing", spec={"containers": []})
    yield make_pod("many-labels", labels={f"example.com/{number}": _LONG for number in range(1_000)})
    yield make_pod("numbers", labels={"size": "NaN", "group-size": "many", "cost": "-1e999", "when": ""})
    yield make_pod("greedy", cpu=str(2**52), memory="8Ei")
    yield make_pod("negative", priority=-(2**31))
    yield make_pod("important", priority=2_000_000_000)
    yield make_pod("unknown-resource", resources={"example.com/unavailable": 3})
    yield make_pod(
        "picky", node_selector={"kubernetes.io/hostname": "plain"}, tolerations=["t1"], host_ports=[1, 65535]
    )
    yield make_pod("many-containers", spec={"containers": [{"name": f"c{number}"} for number in range(200)]})
