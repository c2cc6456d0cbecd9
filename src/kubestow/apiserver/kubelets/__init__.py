"""Nodes that act: stand-ins for kubelets, which make bound pods run, finish and end, and keep nodes alive."""
