"""Plugins that kube-scheduler had until v1.22 or v1.23: for a Policy, and for profiles that still name them."""
