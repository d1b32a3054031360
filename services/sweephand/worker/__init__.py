"""Run jobs on dramatiq's threads: the only home of dramatiq. `process.run` is the worker command."""
