"""The shop's rules, without a word about databases, HTTP or jobs."""
