"""What the reference application promises."""
