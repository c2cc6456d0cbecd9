"""Metrics of the build: its version and the enabled features."""

from msgspec.structs import fields

from kubestow.config.features import GA, PRE_ALPHA, SCHEDULING_GATES, Features, gates_at
from kubestow.telemetry.build import BuildInfo
from kubestow.telemetry.metrics.instruments import ALPHA, BETA, Gauge
from kubestow.telemetry.metrics.registry import Registry


def add_build_metrics(registry: Registry, build: BuildInfo, features: Features) -> None:
    """Add the metrics of the build, whose values never change."""
    labels = sorted(["major", "minor", *(field.name for field in fields(build))])
    info = registry.add(
        Gauge("kubernetes_build_info", BETA, "Constant 1; the labels give the version.", " ".join(labels))
    )
    info.set(1, *(getattr(build, label) for label in labels))
    version = f"{build.major}.{build.minor}"
    registry.add(
        Gauge(
            "version_info",
            ALPHA,
            "Constant 1; the labels give the version, the emulated version and the oldest compatible version.",
            "binary component emulation min_compat",
        )
    ).set(1, version, "kube", f"1.{features.versions.emulated}", f"1.{features.versions.compatible}")
    enabled = registry.add(
        Gauge(
            "kubernetes_feature_enabled",
            BETA,
            "Whether a feature is enabled (1) or disabled (0); its stage is ALPHA, BETA, DEPRECATED, or empty when GA.",
            "name stage",
        )
    )
    ours = {gate.name for gate in SCHEDULING_GATES}
    for name, gate in gates_at(features.versions).items():
        if gate.stage == PRE_ALPHA:
            continue
        on = features.enabled(name) if name in ours else gate.default
        enabled.set(int(on), name, "" if gate.stage == GA else gate.stage)
