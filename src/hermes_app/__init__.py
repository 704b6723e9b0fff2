"""What a process is made of: one module builds the parts of each program."""
