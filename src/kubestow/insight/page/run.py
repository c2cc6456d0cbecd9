"""The data behind the API: that of a live scheduler, or of a finished run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubestow import config
from kubestow.config import Features, SchedulerConfiguration
from kubestow.config.expansion import expand
from kubestow.config.features import SCHEDULING_GATES
from kubestow.config.plugin_points import IN_TREE, PluginPoints
from kubestow.insight.page.decisions import Decisions
from kubestow.insight.page.history import PageHistory
from kubestow.insight.page.tables import ClusterTable
from kubestow.telemetry.secrets import redact_text

if TYPE_CHECKING:
    from kubestow.insight.page.trying import DryRuns


@dataclass(slots=True)
class Run:
    """The data of one scheduler that the API serves."""

    name: str
    history: PageHistory
    decisions: Decisions
    configuration: Callable[[], dict[str, Any]]
    bench: "DryRuns | None" = None
    """The dry runs; None if they are not possible."""
    moves: Callable[[str], Any] = lambda _uid: ()
    """Returns the last moves of a waiting pod, by UID."""
    no_dry_runs_reason: str = ""
    """Why dry runs are not possible."""
    results: dict[str, Any] = field(default_factory=dict)
    """Figures of a finished run."""
    cluster: ClusterTable = field(default_factory=ClusterTable)


def page_configuration(
    configuration: SchedulerConfiguration, features: Features, known: PluginPoints = IN_TREE
) -> dict[str, Any]:
    """Return a configuration in the format of the API, with the plugins that its profiles enable."""
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
        "yaml": redact_text(config.dump(configuration)),
        "profiles": profiles,
        "extenders": [redact_text(extender.urlPrefix) for extender in configuration.extenders],
        "features": [gate.name for gate in SCHEDULING_GATES if features.enabled(gate.name)],
    }
