"""End-to-end encryption: the keys of the bot's device, and what is done with them."""
