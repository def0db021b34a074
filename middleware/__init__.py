"""What people put around an agent that they have: one module for each framework."""
