"""Metrics, with the names, types, labels and buckets of kube-scheduler's.

    instruments   counters, gauges and histograms: plain numbers in dicts and lists, cheap to change
    registry      which of them are served, as the flags say (options)
    exposition    how they are written: Prometheus text or OpenMetrics
    catalogue     `Metrics`: all there are, part by part; each other module is one part

A part offers methods named for what has happened (`attempt_finished`), shaped as the observers that the framework, the
queue and the client call. What others count anyway (queue lengths, cluster size, plugin calls) is read when metrics are
asked for: the `watch...` methods say from where.
"""
