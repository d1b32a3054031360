"""Where the shop meets the world: ways in call use cases, ways out fulfil ports. Only app.py builds them."""
