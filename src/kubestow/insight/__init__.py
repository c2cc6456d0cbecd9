"""Explanations for people: past decisions, dry runs, and the web page.

    decisions    records of decisions, and their details, which are evaluated again on demand
    explain      dry runs, and changes that would let a pod or a pod group fit
    page         the web page and its JSON API

Nothing here changes the cluster or the scheduler.
"""
