"""Who may use the dashboard: hosts, origins, links, cookies, the password."""
