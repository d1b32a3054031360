"""Be the only home of SQL in the engine: schema, enqueue, claims, finishes, dispatch, ledger and read models."""
