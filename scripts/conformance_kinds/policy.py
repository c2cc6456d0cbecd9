"""Conformance of kind `policy`: a legacy Policy leads to the same plugins and decisions as in kube-scheduler v1.22.

Additions after v1.22 are not compared: PreEnqueue, and points that some plugins did not implement then. In v1.22, the
number of nodes with an image was not updated after the scored node was added.
"""

import json
import re
from typing import Any

import msgspec
import numpy as np

from conformance_kinds.decision import World
from kubestow.api.codec import convert
from kubestow.api.pod import Pod
from kubestow.config import ConfigError, Features, SchedulerConfiguration, policy
from kubestow.config.expansion import expand
from kubestow.config.plugin_points import IN_TREE, SCORING_POINTS
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cycle.evaluation import Evaluation

_ADDED_LATER = {
    "preFilter": {
        *("NodeName", "NodeUnschedulable", "NodeVolumeLimits", "TaintToleration", "VolumeRestrictions", "VolumeZone"),
    },
    "preScore": {"NodeResourcesBalancedAllocation"},
}
_FEATURES = Features.parse("StorageCapacityScoring=false")
_PARTS_OF_VOLUME_LIMITS = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")
_CHANGED_FORMULAS = frozenset({"PodTopologySpread", "NodeResourcesBalancedAllocation"})


def check(case: dict[str, Any]) -> str | None:
    """Return None if the case passes, else the first difference."""
    expect = case["expect"]
    try:
        configuration = policy.load(json.dumps(case["policy"]), _FEATURES)
    except ConfigError as error:
        return _compare_refusal(expect, error)
    if "error" in expect:
        return f"accepted, but should be rejected: {expect['error']}"
    profile = configuration.profiles[0]
    args = {entry.name: _args(entry.args) for entry in profile.pluginConfig}
    for what, found, wanted in (
        ("plugins", _plugins(configuration), _with_current_names(expect["plugins"])),
        (
            "args",
            {name: _fields_of(wanted, args[name]) for name, wanted in expect["args"].items() if name in args},
            expect["args"],
        ),
        ("extenders", _extenders(configuration), expect.get("extenders", [])),
    ):
        if found != wanted:
            return f"{what}: {found}, expected {wanted}"
    if "decisions" not in expect:
        return None
    return _compare_decisions(case, configuration)


def _compare_refusal(expect: dict[str, Any], error: ConfigError) -> str | None:
    if "error" not in expect:
        return f"rejected, but should be accepted: {error}"
    message = str(error).lower()
    missing = [name for name in _names_in(expect["error"]) if name.lower() not in message]
    return f"{expect['error']!r} names {missing[0]}, which is not in: {error}" if missing else None


def _names_in(error: str) -> list[str]:
    """Return the labels, fields, predicates and priorities that an error of kube-scheduler names."""
    error = error.removeprefix("couldn't create scheduler from policy: ").rpartition('initializing plugin "')[2]
    # Labels come from several fields of a Policy; only their values can be compared.
    return (
        re.findall(r'Invalid value: "([^"]+)": conflict with', error)
        or re.findall(r"([a-z][\w.\[\]]*): (?:Invalid|Required|Duplicate|Unsupported) value", error)
        or [a or b for a, b in re.findall(r'"([^"]+)"|(?:priority|predicate) \{?(\w+)(?: \.\.\.| should|$)', error)]
    )


def _plugins(configuration: SchedulerConfiguration) -> dict[str, list[str]]:
    points = expand(configuration.profiles[0].plugins, IN_TREE).points
    found = {
        point: [
            f"{plugin.name}:{plugin.weight}" if point in SCORING_POINTS else plugin.name
            for plugin in plugins
            if plugin.name not in _ADDED_LATER.get(point, ())
        ]
        for point, plugins in points.items()
    }
    return {point: plugins for point, plugins in found.items() if plugins and point != "preEnqueue"}


def _with_current_names(plugins: dict[str, list[str]]) -> dict[str, list[str]]:
    """Replace the five plugins that counted volumes by the one that replaced them, at the first one's place."""

    def renamed(names: list[str]) -> list[str]:
        return list(dict.fromkeys("NodeVolumeLimits" if name in _PARTS_OF_VOLUME_LIMITS else name for name in names))

    return {point: renamed(names) for point, names in plugins.items()}


def _args(args: object) -> Any:
    """Return arguments with Go's field names, and null for empty lists."""
    if isinstance(args, msgspec.Struct):
        return {name[0].upper() + name[1:]: _args(getattr(args, name)) for name in args.__struct_fields__}
    if isinstance(args, tuple):
        return [_args(item) for item in args] or None
    return args


def _fields_of(wanted: dict[str, Any], args: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that v1.22 had; an empty list equals a missing one."""
    return {name: wanted[name] if not wanted[name] and not args[name] else args[name] for name in wanted}


def _extenders(configuration: SchedulerConfiguration) -> list[str]:
    return [extender.urlPrefix for extender in sorted(configuration.extenders, key=lambda extender: extender.ignorable)]


def _compare_decisions(case: dict[str, Any], configuration: SchedulerConfiguration) -> str | None:
    world = World(case, configuration)
    (profile,) = world.profiles.values()
    for manifest, expected in zip(case["pods"], case["expect"]["decisions"], strict=True):
        pod = PodInfo(convert(Pod, manifest))
        found = _decision(Evaluation(profile, world.cluster, world.nominator, pod))
        if "ImageLocality" in profile.plugins:
            for node, scores in found["scores"].items():
                scores["ImageLocality"] = _image_score(case, configuration, pod, node)
        for field in ("feasible", "rejected"):
            if found[field] != expected.get(field, type(found[field])()):
                return f"{pod.name}: {field}: {found[field]}, expected {expected.get(field)}"
        for node, wanted in expected.get("scores", {}).items():
            for plugin in {*wanted, *found["scores"][node]} - _CHANGED_FORMULAS:
                score = found["scores"][node].get(plugin, 0)
                if score != wanted.get(plugin, 0):
                    return f"{pod.name}: {plugin} scores {node} {score}, expected {wanted.get(plugin, 0)}"
        if "chosen" in expected:
            world.cluster.assume(pod, expected["chosen"])
    return None


def _decision(evaluation: Evaluation) -> dict[str, Any]:
    assert evaluation.pre_filter(), evaluation.rejected
    rows, names, verdicts = evaluation.filter(), evaluation.cluster.nodes.names, evaluation.verdicts
    assert verdicts is not None
    refusals = ((names[row], verdicts.rejection(position)) for position, row in enumerate(verdicts.rows))
    if len(rows):
        evaluation.score(rows)
    return {
        "feasible": sorted(names[row] for row in rows),
        "rejected": {node: sorted(refusal.plugins) for node, refusal in refusals if refusal is not None},
        "scores": {
            names[row]: {score.plugin: int(score.weighted[position]) for score in evaluation.scores}
            for position, row in enumerate(rows)
        },
    }


def _image_score(case: dict[str, Any], configuration: SchedulerConfiguration, pod: PodInfo, node: str) -> int:
    """Return the ImageLocality score of a node if nodes that were added later have no images."""
    objects, later = [], False
    for manifest in case["objects"]:
        has_none = later and manifest["kind"] == "Node"
        status = {**manifest.get("status", {}), "images": []}
        objects.append({**manifest, "status": status} if has_none else manifest)
        later = later or (manifest["kind"], manifest["metadata"]["name"]) == ("Node", node)
    world = World({**case, "objects": objects}, configuration)
    (profile,) = world.profiles.values()
    scored = zip(profile.score, profile.weights, strict=True)
    hook, weight = next((hook, weight) for hook, weight in scored if hook.name == "ImageLocality")
    rows = np.array([world.cluster.nodes.row_of[node]])
    return int(hook.function(None, pod, world.cluster.nodes, rows)[0]) * weight
