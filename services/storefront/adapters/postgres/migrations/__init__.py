"""The shop's schema, step by step; `migrate.py` applies what is missing."""
