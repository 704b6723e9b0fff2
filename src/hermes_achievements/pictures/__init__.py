"""Pictures of achievements and recaps, drawn as SVG; a recap also as a self-contained HTML page."""
