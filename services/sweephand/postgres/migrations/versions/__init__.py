"""Hold one module for each schema version, in order of their numbers."""
