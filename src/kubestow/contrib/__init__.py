"""Plugins that are shipped with Kubestow, for needs beyond those of kube-scheduler. All are off by default.

A profile enables one by its name: the package declares them as entry points, like any other package with plugins, so
that what no profile names is not even imported.

Promise: they use nothing but the public API for plugins, and a plugin of yours can do all that they do.
"""
