"""Simulated kubelets: they run bound pods. Promise: no processes and no waiting; containers exist only in statuses."""
