"""Kinds that extend the API: custom resource definitions and API services."""

from kubestow.apiserver.custom import definitions
from kubestow.apiserver.kinds.resource import Resource, Rules
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import pair_at, printed, value_at
from kubestow.apiserver.rules import cluster

KINDS = (
    Resource(
        "apiregistration.k8s.io/v1",
        "APIService apiservices",
        "status",
        cluster=True,
        categories=("api-extensions",),
        rules=Rules(validate=cluster.validate_api_service),
        columns=printed(
            ("Service", pair_at("spec.service", "namespace", "name", none="Local")), ("Available", cells.availability)
        ),
    ),
    Resource(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition customresourcedefinitions crd crds",
        "status",
        cluster=True,
        generation=True,
        categories=("api-extensions",),
        rules=Rules(
            definitions.default,
            definitions.prepare,
            validate=definitions.validate,
            prepare_update=definitions.add_stored_version,
            validate_update=definitions.keep_identity,
        ),
        columns=printed(("Created At", value_at("metadata.creationTimestamp")))[:2],
    ),
)
