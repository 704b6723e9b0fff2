"""E-mail as a platform: a mailbox that the agent reads by IMAP and answers by SMTP."""
