"""What tests of all parts share: databases, real processes, waiting for conditions."""
