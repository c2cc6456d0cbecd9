"""Feature gates that kube-scheduler v1.37 accepts, since all components share one list, but that have no effect here.

Each line declares a gate: its name, its history, and after `needs` the gates that it requires. The history has the
stage and default from a version on, `locked` if the gate cannot be changed, and after `compatible` the oldest version
that all components must have. Versions that can no longer be emulated are left out.
"""

_TABLE = """
APIResponseCompression 1.16 BETA on
APIServerIdentity 1.26 BETA on
APIServerWebhookAuthenticationToken 1.37 ALPHA off
APIServingWithRoutine 1.30 ALPHA off
AggregatedDiscoveryRemoveBetaType 1.33 DEPRECATED on, 1.35 DEPRECATED on locked
AllowDNSOnlyNodeCSR 1.31 DEPRECATED off
AllowInsecureKubeletCertificateSigningRequests 1.31 DEPRECATED off
AllowOverwriteTerminationGracePeriodSeconds 1.32 DEPRECATED off, 1.35 DEPRECATED off locked
AllowParsingUserUIDFromCertAuth 1.33 BETA on
AllowServiceExternalIPs 1.0 GA on
AllowUnsafeMalformedObjectDeletion 1.32 ALPHA off, 1.37 BETA on
AtomicFIFO 1.36 BETA on
AtomicWriteVolumeUserFields 1.37 ALPHA off
AuthorizePodWebsocketUpgradeCreatePermission 1.35 BETA on
CPUManagerPolicyAlphaOptions 1.23 ALPHA off
CPUManagerPolicyBetaOptions 1.23 BETA on
CPUManagerPolicyOptions 1.33 GA on locked
CRDObservedGenerationTracking 1.35 BETA off, 1.36 BETA on
CRDValidationRatcheting 1.33 GA on locked
CRIListStreaming 1.36 ALPHA off
CSIServiceAccountTokenSecrets 1.35 BETA on, 1.36 GA on locked
CSIVolumeHealth 1.21 ALPHA off
ChangeContainerStatusOnKubeletRestart 1.0 GA on, 1.35 DEPRECATED off
ClientsAllowCARotation 1.36 BETA on
ClientsAllowCBOR 1.32 ALPHA off
ClientsAllowTLSCacheGC 1.36 BETA on
ClientsPreferCBOR 1.32 ALPHA off
CloudControllerManagerWatchBasedRoutesReconciliation 1.35 ALPHA off
CloudControllerManagerWebhook 1.27 ALPHA off
ClusterTrustBundle 1.33 BETA off, 1.37 GA on
ClusterTrustBundleProjection 1.33 BETA off, 1.37 GA on needs ClusterTrustBundle
ConcurrentWatchObjectDecode 1.31 BETA off, 1.37 BETA on
ConsistentListFromCacheSkipTimeoutFallback 1.37 ALPHA off
ConstrainedImpersonation 1.35 ALPHA off, 1.36 BETA on
ContainerCheckpoint 1.30 BETA on
ContainerRestartRules 1.34 ALPHA off, 1.35 BETA on
ContainerStopSignals 1.33 ALPHA off
ContextualLogging 1.30 BETA on
ControllerManagerReleaseLeaderElectionLockOnExit 1.36 ALPHA off
CrossNamespaceVolumeDataSource 1.26 ALPHA off
CustomCPUCFSQuotaPeriod 1.12 ALPHA off, 1.36 GA on
CustomResourceFieldSelectors 1.32 GA on locked
DeclarativeValidation 1.33 BETA on, 1.36 GA on locked
DeclarativeValidationBeta 1.36 BETA on needs DeclarativeValidation
DeclarativeValidationTakeover 1.33 BETA off, 1.36 DEPRECATED off, 1.37 DEPRECATED off locked needs DeclarativeValidation
DefaultPodSysctls 1.37 ALPHA off
DeploymentReplicaSetTerminatingReplicas 1.33 ALPHA off, 1.35 BETA on
DetectCacheInconsistency 1.34 BETA on
DisableAllocatorDualWrite 1.34 GA on, 1.35 GA on locked needs MultiCIDRServiceAllocator
DisableCPUQuotaWithExclusiveCPUs 1.33 BETA on, 1.36 DEPRECATED on, 1.37 DEPRECATED on locked
DisableNodeKubeProxyVersion 1.33 DEPRECATED on, 1.36 DEPRECATED on locked
EmptyDirVolumeMode 1.37 ALPHA off
EnvFiles 1.34 ALPHA off, 1.35 BETA on
EtcdRangeStream 1.37 BETA on
EventedPLEG 1.26 ALPHA off needs PLEGOnDemandRelist
EvictionRequestAPI 1.37 ALPHA off
ExcludeAdmissionWebhookVirtualResources 1.37 BETA on
ExecProbeTimeout 1.20 GA on, 1.35 GA on locked
ExtendWebSocketsToKubelet 1.36 BETA on needs NodeDeclaredFeatures
ExternalServiceAccountTokenSigner 1.34 BETA on, 1.36 GA on locked
GRPCContainerProbeTLS 1.37 ALPHA off
GitRepoVolumeDriver 1.33 DEPRECATED off, 1.36 DEPRECATED off locked
GracefulNodeShutdown 1.21 BETA on
GracefulNodeShutdownBasedOnPodPriority 1.24 BETA on needs GracefulNodeShutdown
H2CContainerProbe 1.37 ALPHA off needs NodeDeclaredFeatures
HPAConfigurableTolerance 1.33 ALPHA off, 1.35 BETA on, 1.37 GA on locked
HPAGeneration 1.37 BETA on
HPAOptimizedSelectorStore 1.37 BETA on
HPAScaleToZero 1.16 ALPHA off, 1.37 BETA on
HostnameOverride 1.34 ALPHA off, 1.35 BETA on, 1.37 GA on locked
HugepageAwareEviction 1.37 BETA on
ImageMaximumGCAge 1.30 BETA on, 1.35 GA on locked
ImageVolume 1.33 BETA off, 1.35 BETA on, 1.36 GA on locked
ImageVolumeWithDigest 1.35 ALPHA off needs ImageVolume
InOrderInformers 1.33 BETA on, 1.36 GA on locked
InOrderInformersBatchProcess 1.35 BETA on
InPlacePodVerticalScalingMemoryBackedVolumes 1.37 ALPHA off needs InPlacePodVerticalScaling NodeDeclaredFeatures
InformerResourceVersion 1.30 ALPHA off, 1.35 GA on
JobManagedBy 1.32 BETA on, 1.35 GA on locked
KMSv1 1.29 DEPRECATED off
KubeProxyIPVS 1.0 GA on, 1.37 DEPRECATED on
KubeProxyNFTablesLocalhostNodePorts 1.37 ALPHA off
KubeletAllocatedPodsEndpoint 1.37 ALPHA off needs InPlacePodVerticalScaling
KubeletCgroupDriverFromCRI 1.34 GA on locked
KubeletCrashLoopBackOffMax 1.32 ALPHA off, 1.35 BETA on
KubeletEnsureSecretPulledImages 1.33 ALPHA off, 1.35 BETA on
KubeletFineGrainedAuthz 1.33 BETA on, 1.36 GA on locked
KubeletInUserNamespace 1.22 ALPHA off, 1.37 BETA on
KubeletPSI 1.34 BETA on, 1.36 GA on locked
KubeletPodResourcesDynamicResources 1.34 BETA on, 1.36 GA on locked
KubeletPodResourcesGet 1.34 BETA on, 1.36 GA on locked
KubeletPodResourcesListUseActivePods 1.34 DEPRECATED on
KubeletRegistrationGetOnExistsOnly 1.32 DEPRECATED off
KubeletSeparateDiskGC 1.31 BETA on
KubeletServiceAccountTokenForCredentialProviders 1.34 BETA on
KubeletTracing 1.34 GA on locked
ListFromCacheSnapshot 1.34 BETA on
LoggingAlphaOptions 1.24 ALPHA off
LoggingBetaOptions 1.24 BETA on
ManifestBasedAdmissionControlConfig 1.36 ALPHA off, 1.37 BETA on
MaxUnavailableStatefulSet 1.24 ALPHA off, 1.35 BETA off, 1.37 BETA on
MemoryQoS 1.22 ALPHA off, 1.37 BETA on
MultiCIDRServiceAllocator 1.34 GA on locked
MutableCSINodeAllocatableCount 1.34 BETA off, 1.35 BETA on, 1.36 GA on locked
MutablePodResourcesForSuspendedJobs 1.35 ALPHA off, 1.36 BETA on
MutatingAdmissionPolicy 1.34 BETA off, 1.36 GA on
NFTablesNetlink 1.37 BETA on
NFTablesProxyMode 1.33 GA on locked
NodeControllerLeaseCircuitBreaker 1.37 BETA on needs AtomicFIFO
NodeLifecycleConditions 1.37 ALPHA off
NodeLogQuery 1.30 BETA off, 1.36 GA on locked
NodeSwap 1.34 GA on locked
OpenAPIEnums 1.24 BETA on
PLEGOnDemandRelist 1.36 BETA on, 1.37 GA on locked
PersistentVolumeClaimUnusedSinceTime 1.36 ALPHA off, 1.37 BETA on
PodAndContainerStatsFromCRI 1.23 ALPHA off, 1.37 BETA off
PodCertificateRequest 1.34 ALPHA off, 1.35 BETA off, 1.37 GA on
PodDeletionCost 1.22 BETA on
PodLevelResourcesFixDefaulting 1.37 BETA on needs PodLevelResources
PodLevelResourcesFixKubeletQOSClass 1.37 BETA on needs PodLevelResources
PodLogsQuerySplitStreams 1.32 ALPHA off
PodObservedGenerationTracking 1.34 BETA on, 1.35 GA on locked
PodReadyToStartContainersCondition 1.29 BETA on, 1.37 GA on locked
PodTopologyLabelsAdmission 1.33 ALPHA off, 1.35 BETA on
PodsAPI 1.36 ALPHA off, 1.37 BETA on
PortForwardWebsockets 1.31 BETA on
PreferSameTrafficDistribution 1.34 BETA on, 1.35 GA on locked
ProcMountType 1.33 BETA on, 1.36 GA on locked needs UserNamespacesSupport
QOSReserved 1.11 ALPHA off
RecoverVolumeExpansionFailure 1.34 GA on locked
RecursiveReadOnlyMounts 1.33 GA on locked
ReduceDefaultCrashLoopBackOffDecay 1.33 ALPHA off
RelaxedEnvironmentVariableValidation 1.34 GA on locked
RelaxedServiceNameValidation 1.34 ALPHA off, 1.36 BETA on, 1.37 GA on locked
ReloadKubeletClientCAFile 1.36 BETA on
ReloadKubeletServerCertificateFile 1.31 BETA on
RemoteRequestHeaderUID 1.33 BETA on
ResourceHealthStatus 1.31 ALPHA off, 1.36 BETA on needs DynamicResourceAllocation
ResourceHealthStatusMessage 1.36 BETA on needs ResourceHealthStatus
RestartAllContainersOnContainerExits 1.35 ALPHA off, 1.36 BETA on needs ContainerRestartRules NodeDeclaredFeatures
RotateKubeletServerCertificate 1.12 BETA on
RuntimeClassInImageCriApi 1.29 ALPHA off
SELinuxChangePolicy 1.33 BETA on, 1.36 GA on locked
SELinuxMount 1.33 BETA off, 1.37 GA on
SELinuxMountReadWriteOncePod 1.28 BETA on, 1.36 GA on locked
SeparateCacheWatchRPC 1.33 DEPRECATED off, 1.36 DEPRECATED off locked
SeparateTaintEvictionController 1.34 GA on locked
ServiceAccountNodeAudienceRestriction 1.33 BETA on
ServiceAccountTokenJTI 1.32 GA on locked
ServiceAccountTokenNodeBinding 1.33 GA on locked needs ServiceAccountTokenNodeBindingValidation
ServiceAccountTokenNodeBindingValidation 1.32 GA on locked
ServiceAccountTokenPodNodeInfo 1.32 GA on locked
ServiceCIDRStatusFieldWiping 1.0 GA off, 1.36 DEPRECATED on
ShardedListAndWatch 1.36 ALPHA off
SizeBasedListCostEstimate 1.34 BETA on
StaleControllerConsistencyDaemonSet 1.36 BETA on needs AtomicFIFO
StaleControllerConsistencyHPA 1.37 BETA on needs AtomicFIFO
StaleControllerConsistencyJob 1.36 BETA on needs AtomicFIFO
StaleControllerConsistencyReplicaSet 1.36 BETA on needs AtomicFIFO
StaleControllerConsistencyStatefulSet 1.36 BETA on needs AtomicFIFO
StatefulSetRecreateStrategy 1.37 ALPHA off
StatefulSetSemanticRevisionComparison 1.0 BETA on
StorageNamespaceIndex 1.33 DEPRECATED on
StorageVersionAPI 1.20 ALPHA off needs APIServerIdentity
StorageVersionHash 1.15 BETA on
StorageVersionMigrator 1.30 ALPHA off, 1.35 BETA off, 1.37 GA on
StrictIPCIDRValidation 1.33 ALPHA off, 1.36 BETA on
StructuredAuthenticationConfigurationEgressSelector 1.34 BETA on
StructuredAuthenticationConfigurationJWKSMetrics 1.35 BETA on
SupplementalGroupsPolicy 1.33 BETA on, 1.35 GA on locked
SystemdWatchdog 1.32 BETA on, 1.35 GA on locked
TokenRequestServiceAccountUIDValidation 1.34 BETA on
TopologyManagerPolicyAlphaOptions 1.26 ALPHA off
TopologyManagerPolicyBetaOptions 1.28 BETA on
TopologyManagerPolicyOptions 1.32 GA on locked
TranslateStreamCloseWebsocketRequests 1.30 BETA on
UnauthenticatedHTTP2DOSMitigation 1.29 BETA on
UnknownVersionInteroperabilityProxy 1.28 ALPHA off, 1.36 BETA on needs APIServerIdentity
UnlockWhileProcessingFIFO 1.36 BETA on
UserNamespacesHostNetworkSupport 1.35 ALPHA off needs NodeDeclaredFeatures UserNamespacesSupport
UserNamespacesSupport 1.33 BETA on, 1.36 GA on locked
VolumeBindMountOptions 1.37 ALPHA off
WatchCacheInitializationPostStartHook 1.31 BETA off, 1.36 BETA on, 1.37 GA on locked
WatchList 1.34 BETA on
WatchListCompression 1.37 BETA on
WebhookRoundTripLoadBalancing 1.37 BETA on
WinDSR 1.34 GA on locked
WinOverlay 1.34 GA on locked
WindowsGracefulNodeShutdown 1.34 BETA on needs GracefulNodeShutdown
WindowsHostNetwork 1.33 DEPRECATED off
"""

OTHER_GATES = tuple(_TABLE.strip().splitlines())
