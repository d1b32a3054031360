"""Draw the page of a run: for each case a timeline, so that a reader sees the hand-over."""
