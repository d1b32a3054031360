"""What answers over HTTP: the application's API, and the endpoints for probes and scrapes."""
