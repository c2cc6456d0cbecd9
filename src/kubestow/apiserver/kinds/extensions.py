"""The kind by which people define kinds."""

from kubestow.apiserver.custom import definitions
from kubestow.apiserver.kinds.resource import Resource, Rules
from kubestow.apiserver.printing.columns import at, printed

KINDS = (
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
