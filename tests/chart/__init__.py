"""Tests of the bundle: image, chart, manifests, rules and dashboards. They need helm and its friends; see `make chart`."""
