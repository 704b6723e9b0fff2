"""What every front end uses: a conversation, its factory, slash commands, attachments, export."""
