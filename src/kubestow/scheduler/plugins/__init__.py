"""The in-tree plugins: those of kube-scheduler, one module or package each. Shared code is in `support`.

Promise: plugins do not import each other, and only `kubestow.scheduler.in_tree` imports them.
"""
