"""What the shop can do: one module, one thing. Ports come in as arguments; none of it logs, counts or prints."""
