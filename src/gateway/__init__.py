"""The messaging gateway: chat apps on one side, conversations on the other."""
