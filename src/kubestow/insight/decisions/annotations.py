"""A decision as kube-scheduler-simulator leaves it in a pod's annotations, so that tools made for those can read it.

All annotations of an object have a limited size. What does not fit is cut: the best nodes are kept, then those that
were refused last, which are the nearest to fitting; an annotation of our own says so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from kubestow.config.durations import Duration
from kubestow.insight.decisions import schema
from kubestow.scheduler.framework.profile import Profile

PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"
CUT = "kubestow.io/decision-cut"
MOST_BYTES = 256 * 1024
_SPARE_BYTES = 2 * 1024
_BY_NODE = ("filter-result", "postfilter-result", "score-result", "finalscore-result")
_PASSED = "passed"
_SUCCESS = "success"
_WAIT = "wait"
_VICTIM = "preemption victim"


class Plugins(NamedTuple):
    """The plugins of the pod's profile, in order."""

    pre_filter: Sequence[str]
    filter: Sequence[str]
    pre_score: Sequence[str]
    reserve: Sequence[str]
    permit: Sequence[str]

    @classmethod
    def of(cls, profile: Profile) -> Self:
        return cls(*([hook.name for hook in getattr(profile, point)] for point in cls._fields))


def annotations(decision: schema.Decision, plugins: Plugins, room: int = MOST_BYTES) -> dict[str, str]:
    """All of them by key; `room` is how many bytes there are for it, into which only what is about nodes is cut."""
    found = {PREFIX + name: _json(value) for name, value in _results(decision, plugins).items() if value}
    if decision.chosen:
        found[PREFIX + "selected-node"] = decision.chosen
    room -= _SPARE_BYTES + size_of(found)
    kept: dict[str, list[str]] = {key: [] for key in _BY_NODE}
    count, nominated = 0, _nominated(decision)
    nodes = decision.by_node
    forgotten = {name: said for name, said in nominated.items() if name not in nodes}
    kept["postfilter-result"] += [f"{_json(name)}:{_json(said)}" for name, said in forgotten.items()]
    for name, results in _by_node(decision, plugins, nodes, nominated):
        parts = {key: f"{_json(name)}:{_json(result)}" for key, result in results.items()}
        room -= sum(len(part.encode()) + 1 for part in parts.values())
        if room < 0:
            break
        count += 1
        for key, part in parts.items():
            kept[key].append(part)
    found |= {PREFIX + key: f"{{{','.join(parts)}}}" for key, parts in kept.items() if parts}
    if count < len(nodes):
        found[CUT] = f"the best and the nearest {count} of {len(nodes)} nodes: all of them would be too large"
    return found


def size_of(found: Mapping[str, str]) -> int:
    """How many bytes an API server counts."""
    return sum(len(key) + len(value.encode()) for key, value in found.items())


def _results(decision: schema.Decision, plugins: Plugins) -> dict[str, object]:
    """What is not about every node."""
    pre, binding = decision.preFilter, decision.binding
    status = {name: _SUCCESS for name in plugins.pre_filter if name not in pre.skipped}
    if pre.rejected is not None:
        asked = plugins.pre_filter[: plugins.pre_filter.index(pre.rejected.plugin)] if pre.rejected.plugin else ()
        status = {name: _SUCCESS for name in asked if name in status}
        status[pre.rejected.plugin] = ", ".join(pre.rejected.reasons)
    steps: dict[str, dict[str, str]] = {"PreBind": {}, "Bind": {}}
    for step in () if binding is None else binding.steps:
        if step.plugin and step.step in steps:
            steps[step.step][step.plugin] = step.error or _SUCCESS
    # Who refused at Reserve or Permit is not recorded: nothing is said of them unless all agreed.
    placed = binding is not None
    permits = {} if binding is None else binding.permits
    return {
        "prefilter-result-status": status,
        "prefilter-result": {plugin: list(pre.narrowedTo or ()) for plugin in pre.narrowedBy},
        "prescore-result": {name: _SUCCESS for name in plugins.pre_score if name in decision.weights},
        "reserve-result": {name: _SUCCESS for name in plugins.reserve if placed and name not in pre.skipped},
        "permit-result": {name: _WAIT if name in permits else _SUCCESS for name in plugins.permit if placed},
        "permit-result-timeout": {
            name: str(Duration(permits.get(name, 0) * 10**9)) for name in plugins.permit if placed
        },
        "prebind-result": steps["PreBind"],
        "bind-result": steps["Bind"],
    }


def _nominated(decision: schema.Decision) -> dict[str, dict[str, str]]:
    """The node that PostFilter makes room on, if there is one, and who does."""
    preemption = decision.preemption
    return {preemption.nominated: {preemption.plugin: _VICTIM}} if preemption and preemption.nominated else {}


def _by_node(
    decision: schema.Decision,
    plugins: Plugins,
    nodes: Mapping[str, schema.NodeResult],
    nominated: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, dict[str, Mapping[str, str]]]]:
    """What is said of each node, by key and plugin; the node that is taken or made room on first, then the best."""
    asked = [name for name in plugins.filter if name not in decision.preFilter.skipped]
    rank = {name: number for number, name in enumerate(asked)}

    def order(entry: tuple[str, schema.NodeResult]) -> tuple[bool, bool, int, int]:
        name, result = entry
        refused = rank.get(result.rejected.plugin, len(asked)) if result.rejected is not None else 0
        is_other = name != decision.chosen and name not in nominated
        return is_other, result.rejected is not None, -(result.total or 0), -refused

    for name, result in sorted(nodes.items(), key=order):
        said: dict[str, Mapping[str, str]] = {}
        if result.rejected is not None:
            plugin = result.rejected.plugin
            passed = asked[: rank.get(plugin, len(asked))]
            said["filter-result"] = dict.fromkeys(passed, _PASSED) | {plugin: ", ".join(result.rejected.reasons)}
            if decision.preemption is not None:
                # PostFilter is given all nodes that were refused, and has nothing to say of most.
                said["postfilter-result"] = nominated.get(name, {})
        else:
            results = {
                "filter-result": dict.fromkeys(asked, _PASSED),
                "score-result": {plugin: str(score) for plugin, score in result.raw.items()},
                "finalscore-result": {plugin: str(score) for plugin, score in (result.plugins or {}).items()},
            }
            said |= {key: value for key, value in results.items() if value}
        yield name, said


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
