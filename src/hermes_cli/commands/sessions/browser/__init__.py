"""The app of `hermes sessions browse`: search and preview conversations."""
