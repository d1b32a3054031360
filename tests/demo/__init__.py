"""What the demo tells, and that it tells the truth."""
