"""What leaves this machine: use of the network, and changes made elsewhere.

The sandbox enforces the limits; these rules let a person decide before a command runs into
them. The network is asked for once per session. What changes something elsewhere is asked for
by name, also when the network has been granted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_agent.permissions.nested_commands import INTERPRETERS
from hermes_agent.permissions.path_zones import split_options
from hermes_agent.permissions.risks import subcommand
from hermes_agent.permissions.shell_words import word_set
from hermes_agent.permissions.verdicts import RiskFinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermes_agent.permissions.shell_script import ShellCommand

NETWORK_PROGRAMS = word_set(
    "curl wget aria2c http https xh lynx w3m links ftp lftp nc ncat netcat socat telnet ping "
    "traceroute mtr dig nslookup host whois nmap rclone yt-dlp youtube-dl npx pipx bundle "
    "composer mvn gradle sbt"
)
# The first word after the program that needs the network.
NETWORK_SUBCOMMANDS = {
    "git": word_set("clone fetch pull ls-remote push send-pack send-email imap-send lfs svn"),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"),
        word_set("install i ci add update upgrade up outdated audit view info search dlx create x"),
    ),
    **dict.fromkeys(("pip", "pip3"), word_set("install download index search wheel")),
    "uv": word_set("add lock sync pip tool python"),
    "poetry": word_set("add install lock update search"),
    "pipenv": word_set("install update lock sync"),
    "cargo": word_set("fetch update install add search"),
    "go": word_set("get install mod"),
    "gem": word_set("install update fetch search"),
    "conda": word_set("install update search create"),
    "mamba": word_set("install update search create"),
    "brew": word_set("install update upgrade fetch search"),
    "helm": word_set("repo pull install upgrade search"),
    "terraform": word_set("init apply plan"),
}
LOOPBACK = re.compile(
    r"(?:\w+://)?(?:[^/@\s]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\]|::1)(?::\d+)?(?:[/?#].*)?|\d+"
)
LOCAL_GIT_REMOTES = ("/", ".", "file://", "~")
CLOUD_PROGRAMS = word_set(
    "aws gcloud gsutil bq az doctl linode-cli hcloud flyctl fly heroku vercel netlify wrangler "
    "firebase railway render supabase oci ibmcloud scw eksctl sam cdk serverless pulumi ansible "
    "ansible-playbook s3cmd mc terraform tofu kubectl oc helm"
)
CLOUD_READS = word_set("version --version help --help -h completion fmt validate lint template")
FORGE_PROGRAMS = word_set("gh glab hub tea")
CONTAINER_PROGRAMS = word_set("docker podman nerdctl docker-compose buildah skopeo lxc incus")
PUBLISHERS = {
    **dict.fromkeys(("oras", "crane", "regctl"), word_set("push copy")),
    "twine": word_set("upload"),
    "uv": word_set("publish"),
    "poetry": word_set("publish"),
    "flit": word_set("publish"),
    "hatch": word_set("publish"),
    "cargo": word_set("publish yank owner"),
    "gem": word_set("push yank owner"),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun"), word_set("publish unpublish deprecate owner access token")
    ),
}


GIT_SENDERS = word_set("push send-pack send-email imap-send http-push")
GIT_SENDING_TOOLS = frozenset({("lfs", "push"), ("subtree", "push"), ("svn", "dcommit")})
MAILERS = word_set("mail mailx sendmail mutt msmtp swaks")
# Options by which a program that gets credentials runs another one, which sees them, too.
PROGRAM_OPTIONS = {
    **dict.fromkeys(
        ("ssh", "scp", "sftp", "rsync", "mosh"),
        re.compile(
            r"(-o)?\s*(ProxyCommand|LocalCommand|PermitLocalCommand|KnownHostsCommand|Include|Match"
            r"|PKCS11Provider|SecurityKeyProvider)\b.*|-[FISeD].*|--rsh.*|--ssh=.*",
            re.IGNORECASE,
        ),
    ),
    "git": re.compile(r"--(rec|ex|upl).*|-c|--config-env.*|ext::.*", re.DOTALL),
    "gh": re.compile(r"extension|ext|alias"),
}
CREDENTIAL_VARIABLES = re.compile(
    r"(GIT|SSH|RSYNC|GH|DOCKER|KUBE|LD|AWS)_\w+|PAGER|EDITOR|VISUAL|PATH|HOME"
)
CREDENTIAL_KEYS = frozenset(
    {"ssh", "git-push", "git-push-force", "forge", "cloud", "publish", "containers"}
)


def second_program(commands: Iterable[ShellCommand], assigned: Iterable[str]) -> bool:
    """Whether an option or a variable names a program that would run with credentials."""
    commands = list(commands)
    names = {word.partition("=")[0] for each in commands for word in each.words if "=" in word}
    if any(CREDENTIAL_VARIABLES.fullmatch(name) for name in {*names, *assigned}):
        return True
    return any(
        option.fullmatch(word)
        for command in commands
        if (option := PROGRAM_OPTIONS.get(command.program)) is not None
        for word in command.words[1:]
    )


def _program_and_words(command: ShellCommand) -> tuple[str, tuple[str, ...]]:
    """The program and its words without options; of Git from the subcommand on."""
    words = command.words
    if command.program == "git":
        rest = subcommand(command)
        return "git", (*rest[:1], *split_options(command._replace(words=rest)).positionals)
    if INTERPRETERS.fullmatch(command.program) and "-m" in words[:-1]:
        command = command._replace(words=words[words.index("-m") + 1 :])
    return command.program, split_options(command).positionals


def findings(command: ShellCommand) -> Iterator[RiskFinding]:
    """What one simple command does outside this machine."""
    program, words = _program_and_words(command)
    first = words[0] if words else ""
    if program == "git" and (first in GIT_SENDERS or words[:2] in GIT_SENDING_TOOLS):
        yield RiskFinding("git-push", "sends commits to another repository (git push)")
    if program in FORGE_PROGRAMS and first:
        yield RiskFinding("forge", f"uses your account at a code host ({program})")
    if program in CLOUD_PROGRAMS and first and first not in CLOUD_READS:
        yield RiskFinding("cloud", f"uses your cloud account ({program})")
    if program in CONTAINER_PROGRAMS and first:
        yield RiskFinding("containers", f"controls containers of this machine ({program})")
    if program in MAILERS:
        yield RiskFinding("publish", f"sends e-mail ({program})")
    if first in PUBLISHERS.get(program, ()) or words[:2] == ("npm", "publish"):
        yield RiskFinding("publish", "publishes a package")
    if _uses_network(program, words):
        yield RiskFinding("network", f"uses the network ({program})")


def _uses_network(program: str, words: tuple[str, ...]) -> bool:
    if program in NETWORK_PROGRAMS:
        return any(not LOOPBACK.fullmatch(word) for word in words)
    if not words or words[0] not in NETWORK_SUBCOMMANDS.get(program, ()):
        return False
    is_local_clone = program == "git" and any(
        word.startswith(LOCAL_GIT_REMOTES) for word in words[1:]
    )
    return not is_local_clone
