"""Dashboard tabs of plugins: manifests and Python APIs."""
