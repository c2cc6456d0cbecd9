"""Formats a decision as the pod annotations of kube-scheduler-simulator, so that tools made for these can read it.

The total size of an object's annotations is limited. If the results of all nodes exceed it, the best nodes are kept,
then the nodes that passed the most filters; an additional annotation reports how many nodes are kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from kubestow.config.durations import Duration
from kubestow.insight.decisions import schema
from kubestow.scheduler.framework.profile import Profile

PREFIX = "kube-scheduler-simulator.sigs.k8s.io/"
CUT_KEY = "kubestow.io/decision-cut"
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


def annotations(decision: schema.Decision, plugins: Plugins, limit: int = MOST_BYTES) -> dict[str, str]:
    """Return the annotations by key. Results of nodes are cut to keep within `limit` bytes, other results are not."""
    found = {PREFIX + name: _json(value) for name, value in _results(decision, plugins).items() if value}
    if decision.chosen:
        found[PREFIX + "selected-node"] = decision.chosen
    limit -= _SPARE_BYTES + size_of(found)
    kept: dict[str, list[str]] = {key: [] for key in _BY_NODE}
    count, nominated = 0, _nominated(decision)
    nodes = decision.by_node
    not_evaluated = {name: result for name, result in nominated.items() if name not in nodes}
    kept["postfilter-result"] += [f"{_json(name)}:{_json(result)}" for name, result in not_evaluated.items()]
    for name, results in _by_node(decision, plugins, nodes, nominated):
        parts = {key: f"{_json(name)}:{_json(result)}" for key, result in results.items()}
        limit -= sum(len(part.encode()) + 1 for part in parts.values())
        if limit < 0:
            break
        count += 1
        for key, part in parts.items():
            kept[key].append(part)
    found |= {PREFIX + key: f"{{{','.join(parts)}}}" for key, parts in kept.items() if parts}
    if count < len(nodes):
        found[CUT_KEY] = f"the {count} best of {len(nodes)} nodes; the results of all nodes exceed the size limit"
    return found


def size_of(found: Mapping[str, str]) -> int:
    """Return the number of bytes that an API server counts for annotations."""
    return sum(len(key) + len(value.encode()) for key, value in found.items())


def _results(decision: schema.Decision, plugins: Plugins) -> dict[str, object]:
    """Return the annotations that are not about single nodes, by name."""
    pre, binding = decision.preFilter, decision.binding
    status = {name: _SUCCESS for name in plugins.pre_filter if name not in pre.skipped}
    if pre.rejected is not None:
        called = plugins.pre_filter[: plugins.pre_filter.index(pre.rejected.plugin)] if pre.rejected.plugin else ()
        status = {name: _SUCCESS for name in called if name in status}
        status[pre.rejected.plugin] = ", ".join(pre.rejected.reasons)
    steps: dict[str, dict[str, str]] = {"PreBind": {}, "Bind": {}}
    for step in () if binding is None else binding.steps:
        if step.plugin and step.step in steps:
            steps[step.step][step.plugin] = step.error or _SUCCESS
    # The plugin that rejected a pod at Reserve or Permit is not recorded, so these are only set if all plugins agreed.
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
    """Return the PostFilter result of the node that is nominated by preemption, if there is one."""
    preemption = decision.preemption
    return {preemption.nominated: {preemption.plugin: _VICTIM}} if preemption and preemption.nominated else {}


def _by_node(
    decision: schema.Decision,
    plugins: Plugins,
    nodes: Mapping[str, schema.NodeResult],
    nominated: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[str, dict[str, Mapping[str, str]]]]:
    """Yield the results of each node, by annotation and plugin: first the chosen or nominated node, then the best."""
    filters = [name for name in plugins.filter if name not in decision.preFilter.skipped]
    rank = {name: number for number, name in enumerate(filters)}

    def order(entry: tuple[str, schema.NodeResult]) -> tuple[bool, bool, int, int]:
        name, result = entry
        passed = rank.get(result.rejected.plugin, len(filters)) if result.rejected is not None else 0
        is_other = name != decision.chosen and name not in nominated
        return is_other, result.rejected is not None, -(result.total or 0), -passed

    for name, result in sorted(nodes.items(), key=order):
        by_annotation: dict[str, Mapping[str, str]] = {}
        if result.rejected is not None:
            plugin = result.rejected.plugin
            passed = dict.fromkeys(filters[: rank.get(plugin, len(filters))], _PASSED)
            by_annotation["filter-result"] = passed | {plugin: ", ".join(result.rejected.reasons)}
            if decision.preemption is not None:
                # PostFilter gets all rejected nodes, and has no result for most of them.
                by_annotation["postfilter-result"] = nominated.get(name, {})
        else:
            results = {
                "filter-result": dict.fromkeys(filters, _PASSED),
                "score-result": {plugin: str(score) for plugin, score in result.raw.items()},
                "finalscore-result": {plugin: str(score) for plugin, score in (result.plugins or {}).items()},
            }
            by_annotation |= {key: value for key, value in results.items() if value}
        yield name, by_annotation


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
