"""What the cases use: the shop under test, wherever it runs, its ledger and its metrics."""
