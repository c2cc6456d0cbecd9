"""Admission: plugins and policies that change or deny a write, depending on other objects in the cluster.

Plugins have the names and messages of kube-apiserver. Mutating plugins run once the defaults of an object are set;
validating plugins see it as it would be stored.
"""
