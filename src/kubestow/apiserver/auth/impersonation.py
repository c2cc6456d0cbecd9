"""Acting for somebody else, as `kubectl --as` asks for: whoever may impersonate is answered as the other."""

from kubestow.apiserver import errors
from kubestow.apiserver.auth.identities import AUTHENTICATED
from kubestow.apiserver.auth.policy import Attempt, Authorizer
from kubestow.apiserver.objects.intent import User

_ACCOUNT = "system:serviceaccount:"


def acting_for(headers: dict[bytes, bytes], author: User, authorizer: Authorizer) -> User:
    """The user whom the headers of a request name, if its author may act for them; else the author."""
    name = headers.get(b"impersonate-user", b"").decode(errors="replace")
    given = headers.get(b"impersonate-group", b"").decode(errors="replace").split(",")
    groups = tuple(group.strip() for group in given if group.strip())
    if not name:
        if groups:
            raise errors.bad_request("requested impersonation of groups without impersonating a user")
        return author
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":") if name.startswith(_ACCOUNT) else ("", "", "")
    wanted = [("serviceaccounts", account) if account else ("users", name), *(("groups", group) for group in groups)]
    for resource, one in wanted:
        if not authorizer.allowed(author, Attempt("impersonate", resource, namespace=namespace, name=one)):
            why = f'User "{author.name}" cannot impersonate resource "{resource}" in API group "" at the cluster scope'
            raise errors.forbidden("", resource, one, why)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(name, (*groups, AUTHENTICATED))
