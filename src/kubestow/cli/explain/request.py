"""The command line of `kubestow explain`."""

from typing import NamedTuple

from kubestow.cli.support import PollData
from kubestow.config import Features
from kubestow.insight.explain.owners import owner_kind
from kubestow.insight.explain.scheduler_pages import SchedulerAddress
from kubestow.plugin.loading import PluginCollection

_GROUP_WORDS = ("podgroup", "podgroups", "podgroups.scheduling.k8s.io", "podgroup.scheduling.k8s.io")


class Request(NamedTuple):
    """The arguments and options."""

    pod: str
    files: tuple[str, ...]
    cluster: tuple[str, ...]
    configuration: str | None
    plugins: PluginCollection
    features: Features | None
    """None: not given."""
    namespace: str
    all_namespaces: bool
    selector: str
    output: str | None
    node: str
    against: str
    what_if_node: str
    patch: bool
    kubeconfig: str
    context: str
    server: SchedulerAddress
    watch: bool
    extenders: bool
    polled: PollData
    """Values that plugins poll."""

    @property
    def group(self) -> str:
        """The name of the pod group to explain, if any."""
        kind, _, name = self.pod.partition("/")
        return name if kind in _GROUP_WORDS else ""

    @property
    def owner(self) -> tuple[str, str]:
        """The kind and name of the owner whose pending pods are shown; empty if there is none."""
        kind, slash, name = self.pod.partition("/")
        found = owner_kind(kind) if slash else ""
        return (found, name) if found else ("", "")

    @property
    def is_overview(self) -> bool:
        """Whether pending pods are shown instead of one."""
        return not self.files and (not self.pod or bool(self.owner[0]))
