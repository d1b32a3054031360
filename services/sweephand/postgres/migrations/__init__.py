"""Hold the one lineage of schema changes; each only expands, so the release before still runs on the new schema."""
