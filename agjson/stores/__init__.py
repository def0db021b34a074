"""Thread stores that outlive a process."""
