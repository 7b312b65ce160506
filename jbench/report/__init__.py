"""What people see: tables, computed from result files alone, and the catalogue of what can be run."""
