"""Kubestow: kube-scheduler, in Python."""

__version__ = "1.37.0"
