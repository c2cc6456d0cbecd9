"""The registry of metrics: those that are served, and the metrics about metrics."""

from typing import TypeVar

from kubestow.telemetry.metrics.instruments import ALPHA, BETA, Counter, Family, Key
from kubestow.telemetry.metrics.options import MetricOptions

F = TypeVar("F", bound=Family)


class Registry:
    """All metrics by name."""

    def __init__(self, options: MetricOptions = MetricOptions()) -> None:  # noqa: B008 - frozen
        self._options = options
        self._known: dict[str, Family] = {}
        self._served: dict[str, Family] = {}
        self._hidden = 0

    def add(self, family: F, *, served: bool = True, hidden_since: str = "") -> F:
        """Add a metric, or return the existing one of the same declaration: a plugin may be created more than once.

        A metric that is not served can be updated but is not shown, nor is one that a version of Kubernetes hides,
        unless the options show it. Raises ValueError if the declarations differ.
        """
        if hidden_since:
            family.deprecate(hidden_since)
        known = self._known.setdefault(family.name, family)
        if known is not family:
            if type(known) is not type(family) or known.declaration != family.declaration:
                raise ValueError(f"there are two metrics named {family.name}")
            return known
        if served and hidden_since and not self._options.shows_hidden:
            self._hidden += 1
        elif served and family.name not in self._options.disabled:
            family.allowed = {
                label: values
                for (metric, label), values in self._options.allowed.items()
                if metric == family.name and label in family.labels
            }
            self._served[family.name] = family
        return family

    def families(self) -> list[Family]:
        """Return the served metrics, sorted by name."""
        return [family for _, family in sorted(self._served.items())]

    def add_own_metrics(self) -> None:
        """Add the metrics about metrics."""
        registered = Counter(
            "registered_metrics_total",
            BETA,
            "Number of served metrics, by stability level and the version that deprecated them.",
            "deprecated_version stability_level",
        )
        disabled = Counter("disabled_metrics_total", BETA, "Number of metrics disabled by flag.")
        hidden = Counter("hidden_metrics_total", BETA, "Number of metrics hidden because they are deprecated.")
        unexpected = Counter(
            "cardinality_enforcement_unexpected_categorizations_total",
            ALPHA,
            "Number of label values replaced because they are not in the list of allowed values.",
        )
        registered.watch(self._by_level)
        hidden.watch(lambda: {(): self._hidden})
        disabled.watch(lambda: {(): len(self._options.disabled)})
        unexpected.watch(lambda: {(): sum(family.unexpected() for family in self._served.values())})
        for family in (registered, disabled, hidden, unexpected):
            self.add(family)

    def _by_level(self) -> dict[Key, float]:
        levels: dict[Key, float] = {}
        for family in self._served.values():
            if family.level:
                key = (family.deprecated, family.level)
                levels[key] = levels.get(key, 0) + 1
        return levels
