"""Metrics, with the names, types, labels and buckets of kube-scheduler.

    scheduler     scheduler_...: the scheduler's own metrics
    client        rest_client_..., leader_election_..., workqueue_...: the metrics of the API client
    health        kubernetes_healthcheck...: a separate page
    build         version and features; process: process statistics of Linux
    catalogue     `Metrics`: all of them
    instruments   counters, gauges and histograms: plain numbers in dicts and lists, cheap to update
    registry      the metrics that are served, according to the flags (options)
    exposition    the output formats: Prometheus text and OpenMetrics

A new metric is declared in one place and updated by one call, where the event happens: `inc`, `observe` or `set`.
Numbers that exist already (queue lengths, cluster size, plugin calls) are read on each scrape: `watch` and `track`.
"""
