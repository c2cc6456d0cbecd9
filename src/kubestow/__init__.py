"""Kubestow: kube-scheduler, in Python."""

__version__ = "1.36.0"
