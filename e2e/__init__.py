"""End to end: the release on a real cluster, or its processes here, under the faults that production has.

`make e2e` runs it all on a kind cluster of its own; `make e2e ON=processes` runs what needs no cluster, in a minute or two.

system/     what the cases use: `shop.py` says what can be asked of a shop and done to it; `cluster_shop.py` and
            `process_shop.py` do it; `ledger.py` reads what the database holds, `scrapes.py` what Prometheus recorded.
report/     draws the page of a run: for each case a timeline of leader, ticks, enqueued, skipped and missed.
ticks/      promises of the dispatchers, one file for each promise or fault; jobs/ of workers and PostgreSQL; objects/ of what
            chart and manifests make; whole_cluster/ under faults that befall every shop of a cluster.
"""
