"""The tests: one directory for each part, support for all of them."""
