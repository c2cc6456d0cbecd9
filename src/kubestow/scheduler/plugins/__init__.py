"""The plugins that kube-scheduler has, one file each; what several need is in `support`.

Plugins do not import each other, and nothing but the wiring imports them.
"""
