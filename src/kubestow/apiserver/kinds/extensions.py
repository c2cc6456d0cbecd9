"""The kinds by which people extend the API: definitions of kinds, and groups that are served."""

from kubestow.apiserver.custom import definitions
from kubestow.apiserver.kinds.resource import Resource, Rules
from kubestow.apiserver.printing.columns import at, printed
from kubestow.apiserver.rules import registration

KINDS = (
    Resource(
        "apiregistration.k8s.io/v1",
        "APIService apiservices",
        "status",
        cluster=True,
        categories=("api-extensions",),
        rules=Rules(validate=registration.validate),
        columns=printed(("Service", registration.server), ("Available", registration.availability)),
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
            prepare_update=definitions.remember_stored,
            validate_update=definitions.keep_identity,
        ),
        columns=printed(("Created At", at("metadata.creationTimestamp")))[:2],
    ),
)
