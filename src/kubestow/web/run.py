"""What the API tells of: a live scheduler, or a run that is over."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubestow import config
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.expansion import expand
from kubestow.config.features import SCHEDULING_GATES
from kubestow.config.plugin_points import IN_TREE, PluginPoints
from kubestow.model.pod_groups import PodGroup
from kubestow.reporting.secrets import hide_in_text
from kubestow.web.decisions import Decisions
from kubestow.web.history import History
from kubestow.web.moments import State
from kubestow.web.tables import ClusterTable

if TYPE_CHECKING:
    from kubestow.web.trying import Bench


@dataclass(slots=True)
class Run:
    """One scheduler and what is known of it."""

    name: str
    history: History
    decisions: Decisions
    configuration: Callable[[], dict[str, Any]]
    bench: "Bench | None" = None
    """Where pods are tried."""
    groups: Callable[[], Iterable[PodGroup]] = tuple
    moves: Callable[[str], Any] = lambda _uid: ()
    """The last moves of a waiting pod."""
    cannot_try: str = "the objects were not kept: kubestow simulate --out keeps them"
    """Why, where there is no bench."""
    results: dict[str, Any] = field(default_factory=dict)
    """Figures of a run that is over."""
    cluster: ClusterTable = field(default_factory=ClusterTable)

    def state(self, at: float | None) -> State | None:
        """How things are, or were then; None if nobody knows any more."""
        return self.history.now if at is None else self.history.at(at)


def configuration_told(
    configuration: SchedulerConfiguration, features: Features, known: PluginPoints = IN_TREE
) -> dict[str, Any]:
    """A configuration, and what its profiles come to."""
    profiles = []
    for profile in configuration.profiles:
        points = expand(profile.plugins, known).points
        enabled = {
            point: [{"name": one.name} | ({"weight": one.weight} if one.weight else {}) for one in plugins]
            for point, plugins in points.items()
            if plugins
        }
        percentage = profile.percentageOfNodesToScore
        profiles.append({"name": profile.schedulerName, "percentageOfNodesToScore": percentage, "points": enabled})
    return {
        "yaml": hide_in_text(config.dump(configuration)),
        "profiles": profiles,
        "extenders": [hide_in_text(extender.urlPrefix) for extender in configuration.extenders],
        "features": [gate.name for gate in SCHEDULING_GATES if features.enabled(gate.name)],
    }


class ToldConfiguration:
    """The one in use, written anew when it is another."""

    def __init__(
        self,
        configuration: Callable[[], SchedulerConfiguration],
        features: Features,
        known: Callable[[], PluginPoints],
    ) -> None:
        self._configuration = configuration
        self._features = features
        self._known = known
        self._told: tuple[SchedulerConfiguration, dict[str, Any]] | None = None

    def __call__(self) -> dict[str, Any]:
        configuration = self._configuration()
        if self._told is None or self._told[0] is not configuration:
            self._told = (configuration, configuration_told(configuration, self._features, self._known()))
        return self._told[1]
