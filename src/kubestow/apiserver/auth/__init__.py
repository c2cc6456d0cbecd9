"""Authentication and authorization: certificates, tokens, a kubeconfig, RBAC and a fixed policy."""
