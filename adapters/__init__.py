"""The adapters, one package for each provider or framework, all of one shape (`docs/adapters/`)."""
