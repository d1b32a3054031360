"""Two mailers: one for a mail server, and a simulated one for a machine that has none."""
