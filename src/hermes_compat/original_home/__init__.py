"""Moving from hermes-agent: what its home contains, and what is taken over."""
