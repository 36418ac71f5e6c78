"""What the service does for its tenants, without HTTP."""
