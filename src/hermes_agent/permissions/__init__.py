"""What the agent may do without asking, what it must ask for, and what it never does.

verdicts    the answers: Allow, Ask, Refuse; what was found and how grave it is
words       what the words of a shell command will be when it runs, as far as can be known
script      a command line taken apart: every simple command anywhere in it
documents   here-documents, which the parser does not always understand
unwrapping  commands inside commands: sudo, env, xargs, bash -c, eval
places      where a path lies: in the working folder, outside, in a place that holds the system
writing     which files a command writes
floor       what never runs, in any mode
risks       what is asked for; git_risks the same for Git
reading     programs that only read
judging     all of these over one command line
grants      answers that were given: once, for a session, always
deciding    Approvals: the mode, the findings and the grants make the verdict

This is a guard against mistakes, not a wall against an attacker: a program may do anything
once it runs, and the operating system is the only boundary that holds.
"""
