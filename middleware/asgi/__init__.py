"""AgJSON over HTTP: an agent behind one endpoint."""
