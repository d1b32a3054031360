"""The shop's JSON API: each route calls one use case."""
