"""The shop's tables and all of its SQL."""
