"""Who gets in, and what they may do: certificates, tokens, a kubeconfig, a small fixed policy."""
