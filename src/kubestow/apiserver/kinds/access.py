"""Kinds about who may do what: authentication, authorization, certificates, admission, flow control."""

from kubestow.apiserver.kinds.resource import Resource, Rules
from kubestow.apiserver.printing import cells
from kubestow.apiserver.printing.columns import Titled, at, count, printed
from kubestow.apiserver.rules import access, admission, names

_ASKED = ("create",)
_ROLE = Rules(validate=access.validate_role, valid_name=names.path_segment)
_BINDING = Rules(access.default_binding, validate=access.validate_binding, validate_update=access.keep_role,
                 valid_name=names.path_segment)  # fmt: skip
_SUBJECTS: tuple[Titled, ...] = (
    ("Users", lambda obj: cells.subjects(obj, "User")),
    ("Groups", lambda obj: cells.subjects(obj, "Group")),
    ("ServiceAccounts", lambda obj: cells.subjects(obj, "ServiceAccount")),
)
_POLICY_BINDING = printed(("PolicyName", "spec.policyName"), ("ParamRef", at("spec.paramRef.name", "<unset>")))

KINDS = (
    Resource("authentication.k8s.io/v1", "TokenReview tokenreviews", cluster=True, verbs=_ASKED),
    Resource("authentication.k8s.io/v1", "SelfSubjectReview selfsubjectreviews", cluster=True, verbs=_ASKED),
    Resource("authorization.k8s.io/v1", "SubjectAccessReview subjectaccessreviews", cluster=True, verbs=_ASKED),
    Resource("authorization.k8s.io/v1", "LocalSubjectAccessReview localsubjectaccessreviews", verbs=_ASKED),
    Resource("authorization.k8s.io/v1", "SelfSubjectAccessReview selfsubjectaccessreviews", cluster=True, verbs=_ASKED),
    Resource("authorization.k8s.io/v1", "SelfSubjectRulesReview selfsubjectrulesreviews", cluster=True, verbs=_ASKED),
    Resource("rbac.authorization.k8s.io/v1", "Role roles", rules=_ROLE),
    Resource("rbac.authorization.k8s.io/v1", "ClusterRole clusterroles", cluster=True, rules=_ROLE),
    Resource(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding rolebindings",
        rules=_BINDING,
        columns=printed(("Role", cells.role), wide=_SUBJECTS),
    ),
    Resource(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding clusterrolebindings",
        cluster=True,
        rules=_BINDING,
        columns=printed(("Role", cells.role), wide=_SUBJECTS),
    ),
    Resource(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest certificatesigningrequests csr",
        "status approval",
        cluster=True,
        selectable="spec.signerName",
        rules=Rules(
            access.default_request,
            sign=access.sign_request,
            validate=access.validate_request,
            validate_update=access.keep_request,
        ),
        columns=printed(
            after=(
                ("SignerName", "spec.signerName"),
                ("Requestor", at("spec.username", none="")),
                ("RequestedDuration", cells.requested_duration),
                ("Condition", cells.certificate_state),
            )
        ),
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy validatingadmissionpolicies",
        "status",
        cluster=True,
        generation=True,
        rules=Rules(admission.default_policy, validate=admission.validate_policy),
        columns=printed(("Validations", count("spec.validations")), ("ParamKind", cells.parameter_kind)),
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings",
        cluster=True,
        generation=True,
        rules=Rules(validate=admission.validate_policy_binding),
        columns=_POLICY_BINDING,
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicy mutatingadmissionpolicies",
        cluster=True,
        generation=True,
        rules=Rules(admission.default_policy, validate=admission.validate_policy),
        columns=printed(("Mutations", count("spec.mutations")), ("ParamKind", cells.parameter_kind)),
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "MutatingAdmissionPolicyBinding mutatingadmissionpolicybindings",
        cluster=True,
        generation=True,
        rules=Rules(validate=admission.validate_policy_binding),
        columns=_POLICY_BINDING,
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration validatingwebhookconfigurations",
        cluster=True,
        generation=True,
        rules=Rules(admission.default_webhooks, validate=admission.validate_webhooks),
        columns=printed(("Webhooks", count("webhooks"))),
    ),
    Resource(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration mutatingwebhookconfigurations",
        cluster=True,
        generation=True,
        rules=Rules(admission.default_webhooks, validate=admission.validate_webhooks),
        columns=printed(("Webhooks", count("webhooks"))),
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema flowschemas",
        "status",
        cluster=True,
        generation=True,
        rules=Rules(access.default_flow),
        columns=printed(
            ("PriorityLevel", "spec.priorityLevelConfiguration.name"),
            ("MatchingPrecedence", "spec.matchingPrecedence"),
            ("DistinguisherMethod", "spec.distinguisherMethod.type"),
        ),
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration prioritylevelconfigurations",
        "status",
        cluster=True,
        generation=True,
        rules=Rules(access.default_level),
        columns=printed(
            ("Type", "spec.type"),
            ("NominalConcurrencyShares", at("spec.limited.nominalConcurrencyShares")),
            ("Queues", at("spec.limited.limitResponse.queuing.queues")),
        ),
    ),
)
