"""Admission: what other objects in the cluster have to say of one that is written.

Plugins have the names and the words that they have in kube-apiserver. Those that change an object do so once its
defaults are set; those that refuse it see it as it would be stored.
"""
