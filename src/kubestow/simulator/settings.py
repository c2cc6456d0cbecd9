"""What a simulation is run with, beside objects."""

from dataclasses import dataclass, field

from kubestow.apiserver.kubelets.scripts import Pace
from kubestow.config import Features, SchedulerConfiguration
from kubestow.offline.virtual_loop import START

CONTROLLERS = "*,-endpointslice-controller,-serviceaccount-controller,-root-ca-certificate-publisher-controller"
"""All that have to do with pods and nodes."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """What takes time between the scheduler and the API server, in seconds. A scheduling cycle itself takes none."""

    request: float = 0.005
    """From a write of the scheduler (a binding, a status, an eviction) until it is carried out."""
    watch: float = 0.005
    """From a change until the scheduler hears of it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How to simulate."""

    configuration: SchedulerConfiguration | str | None = None
    """The scheduler's; the text of a file, or None for the default."""
    plugins: tuple[type, ...] = ()
    """Plugins of your own, enabled in every profile that does not name them."""
    plugin_sources: tuple[str, ...] = ()
    """Files and modules with plugins, which the configuration enables by name."""
    features: Features = field(default_factory=Features)
    seed: int = 0
    """Of every choice among equals, of names, uids and arrivals."""
    start: int = START
    """What the clock shows at time zero, in seconds since the Unix epoch."""
    latencies: Latencies = field(default_factory=Latencies)
    pace: Pace = field(default_factory=Pace)
    """How long pods take to start, run and stop where they do not say."""
    controllers: str = CONTROLLERS
    """As in kube-controller-manager's --controllers."""
    kubelets: bool = True
    """Whether pods that are bound run and end."""
    checked: bool = False
    """Whether invariants are checked whenever time moves on; costs about as much as the rest."""
    timed: bool = False
    """Whether plugins are timed on this machine's clock, which differs from run to run, not in virtual time."""
    record_bytes: int = 0
    """How much room there is for `decisions`; without any, none are kept."""
