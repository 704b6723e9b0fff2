"""From totals to earned achievements: values, dates, standings, records."""
