"""Metrics, with the names, types, labels and buckets of kube-scheduler's.

    scheduler     scheduler_...: what the scheduler counts of itself
    client        rest_client_..., leader_election_..., workqueue_...: what the API client does
    health        kubernetes_healthcheck...: a page of its own
    build         which version and which features run here; process: what Linux says of the process
    catalogue     `Metrics`: all of them
    instruments   counters, gauges and histograms: plain numbers in dicts and lists, cheap to change
    registry      which of them are served, as the flags say (options)
    exposition    how they are written: Prometheus text or OpenMetrics

A new metric is declared in one place and fed by one call, where the thing happens: `inc`, `observe` or `set`. What is
counted anyway (queue lengths, cluster size, plugin calls) is read when metrics are asked for: `watch` and `track`.
"""
