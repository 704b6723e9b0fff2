"""What the dashboard's answers and questions look like."""
