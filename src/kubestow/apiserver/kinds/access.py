"""Kinds of access control: authentication, authorization, certificates, admission, flow control."""

from functools import partial

from kubestow.apiserver.kinds.resource import Resource, Rules
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import count, pair_at, printed, value_at
from kubestow.apiserver.rules import access, admission, names

_PARAMETER_KIND = pair_at("spec.paramKind", "apiVersion", "kind", none="<unset>")
_review = partial(Resource, cluster=True, verbs=("create",))
_roles = partial(
    Resource, "rbac.authorization.k8s.io/v1", rules=Rules(validate=access.validate_role, valid_name=names.path_segment)
)
_role_bindings = partial(
    Resource,
    "rbac.authorization.k8s.io/v1",
    rules=Rules(
        access.default_binding,
        validate=access.validate_binding,
        validate_update=access.validate_binding_update,
        valid_name=names.path_segment,
    ),
    columns=printed(
        ("Role", pair_at("roleRef", "kind", "name")),
        wide=(
            ("Users", lambda obj: cells.subjects(obj, "User")),
            ("Groups", lambda obj: cells.subjects(obj, "Group")),
            ("ServiceAccounts", lambda obj: cells.subjects(obj, "ServiceAccount")),
        ),
    ),
)
_admission = partial(Resource, "admissionregistration.k8s.io/v1", cluster=True, generation=True)
_policies = partial(_admission, rules=Rules(admission.default_policy, validate=admission.validate_policy))
_policy_bindings = partial(
    _admission,
    rules=Rules(validate=admission.validate_policy_binding),
    columns=printed(("PolicyName", "spec.policyName"), ("ParamRef", value_at("spec.paramRef.name", "<unset>"))),
)
_webhooks = partial(
    _admission,
    rules=Rules(admission.default_webhooks, validate=admission.validate_webhooks),
    columns=printed(("Webhooks", count("webhooks"))),
)
_flow_control = partial(Resource, "flowcontrol.apiserver.k8s.io/v1", cluster=True, generation=True)

KINDS = (
    _review("authentication.k8s.io/v1", "TokenReview tokenreviews"),
    _review("authentication.k8s.io/v1", "SelfSubjectReview selfsubjectreviews"),
    _review("authorization.k8s.io/v1", "SubjectAccessReview subjectaccessreviews"),
    _review("authorization.k8s.io/v1", "LocalSubjectAccessReview localsubjectaccessreviews", cluster=False),
    _review("authorization.k8s.io/v1", "SelfSubjectAccessReview selfsubjectaccessreviews"),
    _review("authorization.k8s.io/v1", "SelfSubjectRulesReview selfsubjectrulesreviews"),
    _roles("Role roles"),
    _roles("ClusterRole clusterroles", cluster=True),
    _role_bindings("RoleBinding rolebindings"),
    _role_bindings("ClusterRoleBinding clusterrolebindings", cluster=True),
    Resource(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest certificatesigningrequests csr",
        "status approval",
        cluster=True,
        selectable="spec.signerName",
        rules=Rules(
            access.default_request,
            set_author=access.set_requester,
            validate=access.validate_request,
            validate_update=access.validate_request_update,
        ),
        columns=printed(
            after=(
                ("SignerName", "spec.signerName"),
                ("Requestor", value_at("spec.username", none="")),
                ("RequestedDuration", cells.requested_duration),
                ("Condition", cells.certificate_state),
            )
        ),
    ),
    _policies(
        "ValidatingAdmissionPolicy validatingadmissionpolicies",
        "status",
        columns=printed(("Validations", count("spec.validations")), ("ParamKind", _PARAMETER_KIND)),
    ),
    _policy_bindings("ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings"),
    _policies(
        "MutatingAdmissionPolicy mutatingadmissionpolicies",
        columns=printed(("Mutations", count("spec.mutations")), ("ParamKind", _PARAMETER_KIND)),
    ),
    _policy_bindings("MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings"),
    _webhooks("ValidatingWebhookConfiguration validatingwebhookconfigurations"),
    _webhooks("MutatingWebhookConfiguration mutatingwebhookconfigurations"),
    _flow_control(
        "FlowSchema flowschemas",
        "status",
        rules=Rules(access.default_flow),
        columns=printed(
            ("PriorityLevel", "spec.priorityLevelConfiguration.name"),
            ("MatchingPrecedence", "spec.matchingPrecedence"),
            ("DistinguisherMethod", "spec.distinguisherMethod.type"),
        ),
    ),
    _flow_control(
        "PriorityLevelConfiguration prioritylevelconfigurations",
        "status",
        rules=Rules(access.default_level),
        columns=printed(
            ("Type", "spec.type"),
            ("NominalConcurrencyShares", value_at("spec.limited.nominalConcurrencyShares")),
            ("Queues", value_at("spec.limited.limitResponse.queuing.queues")),
        ),
    ),
)
