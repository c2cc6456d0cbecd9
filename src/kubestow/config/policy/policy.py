"""Policy v1 as Structs with the field names of the file. An absent list is None, which means the defaults."""

from kubestow.config.configuration import ExtenderManagedResource, ExtenderTLSConfig, Int64, Nanoseconds, Section
from kubestow.config.plugin_args import ResourceSpec, UtilizationShapePoint

API_VERSION = "v1"
KIND = "Policy"


class ServiceAffinity(Section, frozen=True):
    labels: tuple[str, ...] = ()


class LabelsPresence(Section, frozen=True):
    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Section, frozen=True):
    serviceAffinity: ServiceAffinity | None = None
    labelsPresence: LabelsPresence | None = None


class PredicatePolicy(Section, frozen=True):
    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Section, frozen=True):
    label: str = ""


class LabelPreference(Section, frozen=True):
    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(Section, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(Section, frozen=True):
    serviceAntiAffinity: ServiceAntiAffinity | None = None
    labelPreference: LabelPreference | None = None
    requestedToCapacityRatioArguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Section, frozen=True):
    name: str = ""
    weight: Int64 | None = None
    argument: PriorityArgument | None = None


class LegacyExtender(Section, frozen=True):
    """An extender, of which two fields differ from KubeSchedulerConfiguration: `enableHttps` and `httpTimeout`."""

    urlPrefix: str = ""
    filterVerb: str = ""
    preemptVerb: str = ""
    prioritizeVerb: str = ""
    weight: Int64 = 0
    bindVerb: str = ""
    enableHttps: bool = False
    tlsConfig: ExtenderTLSConfig | None = None
    httpTimeout: Nanoseconds = 0
    nodeCacheCapable: bool = False
    managedResources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class Policy(Section, frozen=True):
    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[LegacyExtender, ...] = ()
    hardPodAffinitySymmetricWeight: int = 0
    alwaysCheckAllPredicates: bool = False
