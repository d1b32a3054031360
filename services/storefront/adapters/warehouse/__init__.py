"""Two warehouses: the company's over HTTP, and a simulated one for a machine that has none."""
