"""What the agent may do without asking, what it must ask for, and what it never does.

verdicts         Allow, NeedsApproval, Refuse; findings and their severity
sed_script       whether a script of sed may run a program
shell_words      what the words of a shell command will be when it runs, as far as can be known
shell_script     a command line parsed into its simple commands
nested_commands  commands inside commands: sudo, env, xargs, bash -c, eval
path_zones       where a path is: in the working folder, outside, in a system folder
file_writes      which files a command writes
forbidden        what never runs, in any mode
risks            what is asked for
remote_effects   use of the network, and changes made elsewhere
command_review   all of these over one command line
grants           rules that a person has allowed
approvals        the mode, the findings and the grants make the verdict
limits           the sandbox under which an allowed command runs

The analysis explains and asks; the sandbox (hermes_agent.sandbox) is what holds.
"""
