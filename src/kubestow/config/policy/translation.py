"""Translation of a Policy into a profile.

Predicates are read in their fixed order, priorities by name; each enables its plugin at its extension points.
Predicates and priorities with arguments are combined into the arguments of one plugin: n label preferences of weight w
become NodeLabel with weight n * w. If one plugin replaced two priorities, the first by name sets its weight.
"""

from msgspec.structs import replace

from kubestow.config.configuration import Extender, Plugin, PluginConfig, Plugins, PluginSet, Profile
from kubestow.config.defaults import DEFAULT_SCHEDULER_NAME
from kubestow.config.durations import Duration
from kubestow.config.plugin_args import (
    InterPodAffinityArgs,
    NodeLabelArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioArgs,
    ServiceAffinityArgs,
)
from kubestow.config.plugin_points import IN_TREE
from kubestow.config.policy.policy import LegacyExtender, Policy, PredicatePolicy, PriorityPolicy
from kubestow.config.policy.tables import (
    ALWAYS_ENABLED,
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    DEPRECATED_NAMES,
    FILTERING_POINTS,
    MANDATORY_PREDICATES,
    NO_PRIORITY,
    PREDICATES,
    PRIORITIES,
    SCORING_POINTS,
)

_EVERYTHING = PluginSet(disabled=(Plugin("*"),))


def profile_of(policy: Policy) -> Profile:
    """Return the profile of a valid Policy; arguments that it does not set keep their defaults."""
    translation = _Translation()
    translation.read(policy)
    return Profile(
        schedulerName=DEFAULT_SCHEDULER_NAME,
        plugins=translation.plugins(),
        pluginConfig=tuple(PluginConfig(name, args) for name, args in translation.args.items()),
        alwaysCheckAllPredicates=policy.alwaysCheckAllPredicates,
    )


def extender_of(legacy: LegacyExtender) -> Extender:
    """Convert an extender of a Policy to one of a configuration."""
    fields = {name: getattr(legacy, name) for name in legacy.__struct_fields__}
    https, nanoseconds = fields.pop("enableHttps"), fields.pop("httpTimeout")
    return Extender(**fields | {"enableHTTPS": https, "httpTimeout": Duration(nanoseconds)})


class _Translation:
    def __init__(self) -> None:
        self.args: dict[str, PluginArgs] = {}
        self._enabled: dict[str, dict[str, int]] = {
            point: dict.fromkeys(names, 0) for point, names in ALWAYS_ENABLED.items()
        }
        self._labels = NodeLabelArgs()
        self._services = ServiceAffinityArgs()

    def read(self, policy: Policy) -> None:
        predicates, priorities = DEFAULT_PREDICATES, DEFAULT_PRIORITIES
        if policy.predicates is not None:
            predicates = frozenset(map(self._predicate, policy.predicates)) | MANDATORY_PREDICATES
        if policy.priorities is not None:
            scoring = [priority for priority in policy.priorities if priority.name != NO_PRIORITY]
            priorities = {self._priority(priority): priority.weight or 0 for priority in scoring}
        for name, plugins in PREDICATES.items():
            for plugin in plugins if name in predicates else ():
                self._enable(plugin, FILTERING_POINTS)
        for name, plugin in PRIORITIES.items():
            if name in priorities:
                self._score(name, plugin, priorities[name])
        # `loading.finish` drops the arguments of plugins that are not enabled.
        self.args |= {"NodeLabel": self._labels, "ServiceAffinity": self._services}
        if "InterPodAffinityPriority" in priorities and policy.hardPodAffinitySymmetricWeight:
            self.args["InterPodAffinity"] = InterPodAffinityArgs(policy.hardPodAffinitySymmetricWeight)
        if "EvenPodsSpreadPriority" in priorities and "SelectorSpreadPriority" not in priorities:
            # The other priority spread the pods without constraints.
            self.args["PodTopologySpread"] = PodTopologySpreadArgs(defaultingType="List")

    def plugins(self) -> Plugins:
        """Return the enabled plugins; all default plugins are disabled."""
        sets = {
            point: PluginSet(tuple(Plugin(name, weight) for name, weight in enabled.items()))
            for point, enabled in self._enabled.items()
        }
        return Plugins(**sets, multiPoint=_EVERYTHING)

    def _enable(self, plugin: str, points: tuple[str, ...], weight: int = 0) -> None:
        for point in points:
            if point in IN_TREE[plugin]:
                self._enabled.setdefault(point, {}).setdefault(plugin, weight if point == "score" else 0)

    def _score(self, priority: str, plugin: str, weight: int) -> None:
        if priority == "NodeLabel":
            weight *= len(self._labels.presentLabelsPreference) + len(self._labels.absentLabelsPreference)
        elif priority == "ServiceAffinity":
            weight *= len(self._services.antiAffinityLabelsPreference)
        self._enable(plugin, SCORING_POINTS, weight)

    def _predicate(self, predicate: PredicatePolicy) -> str:
        """Return the name of a predicate in the table; collect the arguments of a custom one."""
        name, argument = DEPRECATED_NAMES.get(predicate.name, predicate.name), predicate.argument
        if name in PREDICATES or argument is None:
            return name
        if argument.serviceAffinity is not None:
            labels = self._services.affinityLabels + argument.serviceAffinity.labels
            self._services = replace(self._services, affinityLabels=labels)
            return "CheckServiceAffinity"
        if argument.labelsPresence is not None:
            field = "presentLabels" if argument.labelsPresence.presence else "absentLabels"
            self._add_labels(field, argument.labelsPresence.labels)
        return "CheckNodeLabelPresence"

    def _priority(self, priority: PriorityPolicy) -> str:
        """Return the name of a priority in the table; collect the arguments of a custom one."""
        name, argument = DEPRECATED_NAMES.get(priority.name, priority.name), priority.argument
        if name in PRIORITIES or argument is None:
            return name
        if argument.serviceAntiAffinity is not None:
            labels = (*self._services.antiAffinityLabelsPreference, argument.serviceAntiAffinity.label)
            self._services = replace(self._services, antiAffinityLabelsPreference=labels)
            return "ServiceAffinity"
        if argument.labelPreference is not None:
            presence = argument.labelPreference.presence
            field = "presentLabelsPreference" if presence else "absentLabelsPreference"
            self._add_labels(field, (argument.labelPreference.label,))
            return "NodeLabel"
        if argument.requestedToCapacityRatioArguments is not None:
            ratio = argument.requestedToCapacityRatioArguments
            self.args["RequestedToCapacityRatio"] = RequestedToCapacityRatioArgs(ratio.shape, ratio.resources)
        return "RequestedToCapacityRatio"

    def _add_labels(self, field: str, labels: tuple[str, ...]) -> None:
        self._labels = replace(self._labels, **{field: getattr(self._labels, field) + labels})
