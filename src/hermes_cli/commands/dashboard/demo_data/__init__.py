"""Sample data of `hermes demo`, in a separate folder."""
