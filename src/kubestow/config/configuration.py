"""KubeSchedulerConfiguration v1 (group kubescheduler.config.k8s.io) as values, under the names of the file.

The defaults here are those of a field that is absent, as far as they are constants; `defaults` fills in the others. A
plain `int` is 32 bits wide, as in the API; `Int64` and `Nanoseconds`, of 64 bits, are marked.
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
    """A part of the file: an immutable value."""


class Plugin(Section, frozen=True):
    name: str = ""
    weight: int = 0


class PluginSet(Section, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(Section, frozen=True):
    """What is enabled and disabled at each extension point; `multiPoint` stands for all that a plugin implements."""

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

    def at(self, point: str) -> PluginSet:
        found: PluginSet = getattr(self, point)
        return found


class PluginConfig(Section, frozen=True):
    """Arguments of a plugin: typed for those of `plugin_args`, else as they are in the file."""

    name: str = ""
    args: object = None


class Profile(Section, frozen=True):
    schedulerName: str = ""
    percentageOfNodesToScore: int | None = None
    plugins: Plugins = Plugins()
    pluginConfig: tuple[PluginConfig, ...] = ()
    alwaysCheckAllPredicates: bool = False
    """Not in kube-scheduler's v1, but in its Policy: every filter is asked about every node."""

    def args_of(self, plugin: str) -> object:
        """The arguments of a plugin, None if it has none."""
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
    """The whole file. After `load` it is complete: nothing is left to be defaulted."""

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
