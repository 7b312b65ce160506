"""What people see: tables, statistics, figures and the site, computed from result files alone."""
