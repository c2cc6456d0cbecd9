"""Feature gates that kube-scheduler v1.36 accepts, since all components share one list, but that have no effect here.

Each line has the name, stage, default, `locked` if the gate cannot be changed, and the gates that it needs.
"""

_TABLE = """
APIResponseCompression BETA on
APIServerIdentity BETA on
APIServerTracing GA on locked
APIServingWithRoutine ALPHA off
AggregatedDiscoveryRemoveBetaType DEPRECATED on locked
AllowDNSOnlyNodeCSR DEPRECATED off
AllowInsecureKubeletCertificateSigningRequests DEPRECATED off
AllowOverwriteTerminationGracePeriodSeconds DEPRECATED off locked
AllowParsingUserUIDFromCertAuth BETA on
AllowServiceExternalIPs GA on
AllowUnsafeMalformedObjectDeletion ALPHA off
AnonymousAuthConfigurableEndpoints GA on locked
AnyVolumeDataSource GA on locked
AtomicFIFO BETA on
AuthorizeNodeWithSelectors GA on locked needs AuthorizeWithSelectors
AuthorizePodWebsocketUpgradeCreatePermission BETA on
AuthorizeWithSelectors GA on locked
BtreeWatchCache GA on locked
CBORServingAndStorage ALPHA off
CPUManagerPolicyAlphaOptions ALPHA off
CPUManagerPolicyBetaOptions BETA on
CPUManagerPolicyOptions GA on locked
CRDObservedGenerationTracking BETA on
CRDValidationRatcheting GA on locked
CRIListStreaming ALPHA off
CSIServiceAccountTokenSecrets GA on locked
CSIVolumeHealth ALPHA off
ChangeContainerStatusOnKubeletRestart DEPRECATED off
ClientsAllowCARotation BETA on
ClientsAllowCBOR ALPHA off
ClientsAllowTLSCacheGC BETA on
ClientsPreferCBOR ALPHA off
CloudControllerManagerWatchBasedRoutesReconciliation ALPHA off
CloudControllerManagerWebhook ALPHA off
ClusterTrustBundle BETA off
ClusterTrustBundleProjection BETA off needs ClusterTrustBundle
ConcurrentWatchObjectDecode BETA off
ConsistentListFromCache GA on locked
ConstrainedImpersonation BETA on
ContainerCheckpoint BETA on
ContainerRestartRules BETA on
ContainerStopSignals ALPHA off
ContextualLogging BETA on
ControllerManagerReleaseLeaderElectionLockOnExit ALPHA off
CrossNamespaceVolumeDataSource ALPHA off
CustomCPUCFSQuotaPeriod GA on
CustomResourceFieldSelectors GA on locked
DeclarativeValidation GA on locked
DeclarativeValidationBeta BETA on needs DeclarativeValidation
DeclarativeValidationTakeover DEPRECATED off needs DeclarativeValidation
DeploymentReplicaSetTerminatingReplicas BETA on
DetectCacheInconsistency BETA on
DisableAllocatorDualWrite GA on locked needs MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs DEPRECATED on
DisableNodeKubeProxyVersion DEPRECATED on locked
EnvFiles BETA on
EventedPLEG ALPHA off
ExecProbeTimeout GA on locked
ExtendWebSocketsToKubelet BETA on needs NodeDeclaredFeatures
ExternalServiceAccountTokenSigner GA on locked
GitRepoVolumeDriver DEPRECATED off locked
GracefulNodeShutdown BETA on
GracefulNodeShutdownBasedOnPodPriority BETA on needs GracefulNodeShutdown
HPAConfigurableTolerance BETA on
HPAScaleToZero ALPHA off
HostnameOverride BETA on
ImageMaximumGCAge GA on locked
ImageVolume GA on locked
ImageVolumeWithDigest ALPHA off needs ImageVolume
InOrderInformers GA on locked
InOrderInformersBatchProcess BETA on
InformerResourceVersion GA on
JobBackoffLimitPerIndex GA on locked
JobManagedBy GA on locked
JobPodReplacementPolicy GA on locked
JobSuccessPolicy GA on locked
KMSv1 DEPRECATED off
KubeletCgroupDriverFromCRI GA on locked
KubeletCrashLoopBackOffMax BETA on
KubeletEnsureSecretPulledImages BETA on
KubeletFineGrainedAuthz GA on locked
KubeletInUserNamespace ALPHA off
KubeletPSI GA on locked
KubeletPodResourcesDynamicResources GA on locked
KubeletPodResourcesGet GA on locked
KubeletPodResourcesListUseActivePods DEPRECATED on
KubeletRegistrationGetOnExistsOnly DEPRECATED off
KubeletSeparateDiskGC BETA on
KubeletServiceAccountTokenForCredentialProviders BETA on
KubeletTracing GA on locked
ListFromCacheSnapshot BETA on
LogarithmicScaleDown GA on locked
LoggingAlphaOptions ALPHA off
LoggingBetaOptions BETA on
ManifestBasedAdmissionControlConfig ALPHA off
MaxUnavailableStatefulSet BETA off
MemoryQoS ALPHA off
MultiCIDRServiceAllocator GA on locked
MutableCSINodeAllocatableCount GA on locked
MutablePodResourcesForSuspendedJobs BETA on
MutatingAdmissionPolicy GA on
NFTablesProxyMode GA on locked
NodeLogQuery GA on locked
NodeSwap GA on locked
OpenAPIEnums BETA on
OrderedNamespaceDeletion GA on locked
PLEGOnDemandRelist BETA on
PersistentVolumeClaimUnusedSinceTime ALPHA off
PodAndContainerStatsFromCRI ALPHA off
PodCertificateRequest BETA off needs AuthorizeNodeWithSelectors
PodDeletionCost BETA on
PodLifecycleSleepAction GA on locked
PodLifecycleSleepActionAllowZero GA on locked needs PodLifecycleSleepAction
PodLogsQuerySplitStreams ALPHA off
PodObservedGenerationTracking GA on locked
PodReadyToStartContainersCondition BETA on
PodTopologyLabelsAdmission BETA on
PodsAPI ALPHA off
PortForwardWebsockets BETA on
PreferSameTrafficDistribution GA on locked
PreventStaticPodAPIReferences BETA on
ProcMountType GA on locked needs UserNamespacesSupport
QOSReserved ALPHA off
RecoverVolumeExpansionFailure GA on locked
RecursiveReadOnlyMounts GA on locked
ReduceDefaultCrashLoopBackOffDecay ALPHA off
RelaxedDNSSearchValidation GA on locked
RelaxedEnvironmentVariableValidation GA on locked
RelaxedServiceNameValidation BETA on
ReloadKubeletClientCAFile BETA on
ReloadKubeletServerCertificateFile BETA on
RemoteRequestHeaderUID BETA on
ResilientWatchCacheInitialization GA on locked
ResourceHealthStatus BETA on needs DynamicResourceAllocation
ResourceHealthStatusMessage BETA on needs ResourceHealthStatus
RestartAllContainersOnContainerExits BETA on needs ContainerRestartRules NodeDeclaredFeatures
RetryGenerateName GA on locked
RotateKubeletServerCertificate BETA on
RuntimeClassInImageCriApi ALPHA off
SELinuxChangePolicy GA on locked
SELinuxMount BETA off
SELinuxMountReadWriteOncePod GA on locked
SeparateCacheWatchRPC DEPRECATED off locked
SeparateTaintEvictionController GA on locked
ServiceAccountNodeAudienceRestriction BETA on
ServiceAccountTokenJTI GA on locked
ServiceAccountTokenNodeBinding GA on locked needs ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation GA on locked
ServiceAccountTokenPodNodeInfo GA on locked
ServiceCIDRStatusFieldWiping DEPRECATED on
ShardedListAndWatch ALPHA off
SizeBasedListCostEstimate BETA on
StaleControllerConsistencyDaemonSet BETA on needs AtomicFIFO
StaleControllerConsistencyJob BETA on needs AtomicFIFO
StaleControllerConsistencyReplicaSet BETA on needs AtomicFIFO
StaleControllerConsistencyStatefulSet BETA on needs AtomicFIFO
StatefulSetSemanticRevisionComparison BETA on
StorageNamespaceIndex DEPRECATED on
StorageVersionAPI ALPHA off needs APIServerIdentity
StorageVersionHash BETA on
StorageVersionMigrator BETA off
StreamingCollectionEncodingToJSON GA on locked
StreamingCollectionEncodingToProtobuf GA on locked
StrictIPCIDRValidation BETA on
StructuredAuthenticationConfiguration GA on locked
StructuredAuthenticationConfigurationEgressSelector BETA on needs StructuredAuthenticationConfiguration
StructuredAuthenticationConfigurationJWKSMetrics BETA on needs StructuredAuthenticationConfiguration
SupplementalGroupsPolicy GA on locked
SystemdWatchdog GA on locked
TokenRequestServiceAccountUIDValidation BETA on
TopologyManagerPolicyAlphaOptions ALPHA off
TopologyManagerPolicyBetaOptions BETA on
TopologyManagerPolicyOptions GA on locked
TranslateStreamCloseWebsocketRequests BETA on
UnauthenticatedHTTP2DOSMitigation BETA on
UnknownVersionInteroperabilityProxy BETA on needs APIServerIdentity
UnlockWhileProcessingFIFO BETA on
UserNamespacesHostNetworkSupport ALPHA off needs UserNamespacesSupport NodeDeclaredFeatures
UserNamespacesSupport GA on locked
WatchCacheInitializationPostStartHook BETA on
WatchList BETA on
WinDSR GA on locked
WinOverlay GA on locked
WindowsGracefulNodeShutdown BETA on needs GracefulNodeShutdown
WindowsHostNetwork DEPRECATED off
"""


def _read(line: str) -> tuple[str, str, bool, bool, tuple[str, ...]]:
    declared, _, needs = line.partition(" needs ")
    name, stage, default, *locked = declared.split()
    return name, stage, default == "on", bool(locked), tuple(needs.split())


OTHER_GATES = tuple(_read(line) for line in _TABLE.strip().splitlines())
"""The fields of each gate: name, stage, default, locked, needs."""
