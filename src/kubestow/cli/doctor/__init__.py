"""`kubestow doctor`: checks of a cluster before Kubestow replaces kube-scheduler in it."""
