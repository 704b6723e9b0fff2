"""From a stored reply to the platform: outbox sender, live replies, message chunks."""
