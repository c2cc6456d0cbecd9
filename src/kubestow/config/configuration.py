"""KubeSchedulerConfiguration v1 (group kubescheduler.config.k8s.io) as Structs with the field names of the file.

The defaults here are the constant ones of absent fields; `defaults` fills in the others. An `int` has 32 bits, as in
the API; `Int64` and `Nanoseconds` have 64 bits.
"""

from typing import Annotated, TypeAlias

from msgspec import Struct

from kubestow.config.durations import Duration

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

Int64: TypeAlias = Annotated[int, "64 bits"]
Nanoseconds: TypeAlias = Annotated[int, "nanoseconds"]

_SECOND = 1_000_000_000


class Section(Struct, frozen=True):
    """An immutable part of the file."""


class Plugin(Section, frozen=True):
    name: str = ""
    weight: int = 0


class PluginSet(Section, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Section, frozen=True):
    """Enabled and disabled plugins of each extension point; `multiPoint` means all points that a plugin implements."""

    preEnqueue: PluginSet = PluginSet()
    queueSort: PluginSet = PluginSet()
    preFilter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    postFilter: PluginSet = PluginSet()
    preScore: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    preBind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    postBind: PluginSet = PluginSet()
    multiPoint: PluginSet = PluginSet()
    placementGenerate: PluginSet = PluginSet()
    placementScore: PluginSet = PluginSet()
    podGroupPostFilter: PluginSet = PluginSet()

    def at(self, point: str) -> PluginSet:
        found: PluginSet = getattr(self, point)
        return found


class PluginConfig(Section, frozen=True):
    """Arguments of a plugin: typed for those of `plugin_args`, otherwise the tree from the file."""

    name: str = ""
    args: object = None


class Profile(Section, frozen=True):
    schedulerName: str = ""
    percentageOfNodesToScore: int | None = None
    plugins: Plugins = Plugins()
    pluginConfig: tuple[PluginConfig, ...] = ()
    alwaysCheckAllPredicates: bool = False
    """Whether all filters run on a node after one has rejected it. In kube-scheduler, a field of the Policy only."""

    def args_of(self, plugin: str) -> object:
        """Return the arguments of a plugin; None if it has none."""
        return next((entry.args for entry in self.pluginConfig if entry.name == plugin), None)


class LeaderElection(Section, frozen=True):
    leaderElect: bool = True
    leaseDuration: Duration = Duration(15 * _SECOND)
    renewDeadline: Duration = Duration(10 * _SECOND)
    retryPeriod: Duration = Duration(2 * _SECOND)
    resourceLock: str = "leases"
    resourceName: str = "kube-scheduler"
    resourceNamespace: str = "kube-system"


class ClientConnection(Section, frozen=True):
    kubeconfig: str = ""
    acceptContentTypes: str = ""
    contentType: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: int = 100


class ExtenderManagedResource(Section, frozen=True):
    name: str = ""
    ignoredByScheduler: bool = False


class ExtenderTLSConfig(Section, frozen=True):
    insecure: bool = False
    serverName: str = ""
    certFile: str = ""
    keyFile: str = ""
    caFile: str = ""
    certData: bytes = b""
    keyData: bytes = b""
    caData: bytes = b""


class Extender(Section, frozen=True):
    urlPrefix: str = ""
    filterVerb: str = ""
    preemptVerb: str = ""
    prioritizeVerb: str = ""
    weight: Int64 = 0
    bindVerb: str = ""
    enableHTTPS: bool = False
    tlsConfig: ExtenderTLSConfig | None = None
    httpTimeout: Duration = Duration(5 * _SECOND)
    nodeCacheCapable: bool = False
    managedResources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(Section, frozen=True):
    """The complete file. After `load`, all defaults are filled in."""

    parallelism: int = 16
    leaderElection: LeaderElection = LeaderElection()
    clientConnection: ClientConnection = ClientConnection()
    enableProfiling: bool = True
    enableContentionProfiling: bool = False
    percentageOfNodesToScore: int = 0
    podInitialBackoffSeconds: Int64 = 1
    podMaxBackoffSeconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delayCacheUntilActive: bool = False
