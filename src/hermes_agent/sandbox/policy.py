"""What a program that runs for the agent may read, write and reach."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermes_core.json_values import JsonObject

# Relative to the home folder. Each holds credentials of the user.
CREDENTIALS: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".config/glab-cli",
    ".config/hub", ".config/rclone", ".config/doctl", ".config/op", ".config/sops", ".docker",
    ".oci", ".terraform.d", ".password-store", ".local/share/keyrings", ".local/share/kwalletd",
    ".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".pgpass", ".my.cnf",
    ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".config/composer/auth.json", ".vault-token", ".mozilla", ".config/chromium",
    ".config/google-chrome", ".config/BraveSoftware", ".thunderbird", ".config/Signal",
    ".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium",
    ".config/Slack", ".config/discord", ".local/share/TelegramDesktop", ".config/1Password",
    ".config/Bitwarden", ".electrum", ".bitcoin", ".ethereum", ".config/solana",
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
    ".config/github-copilot", ".cache/huggingface/token", ".huggingface", ".kaggle", ".s3cfg",
    ".boto", ".databrickscfg", ".config/hcloud", ".config/stripe", ".config/netlify", ".fly",
    ".local/share/com.vercel.cli", ".subversion/auth",
    ".bash_history", ".zsh_history", ".zhistory", ".local/share/fish/fish_history",
    ".python_history", ".psql_history", ".mysql_history", ".sqlite_history", ".rediscli_history",
    ".node_repl_history",
    "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
)  # fmt: skip
# Hidden only when they contain a credential: builds read their other settings.
CREDENTIALS_BY_CONTENT: Final = (
    ".npmrc",
    ".yarnrc.yml",
    ".m2/settings.xml",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".gradle/gradle.properties",
    ".curlrc",
    ".wgetrc",
)
CREDENTIAL_TEXT: Final = re.compile(
    rb"_auth|authToken|password|://[^/\s:]+:[^/\s@]+@", re.IGNORECASE
)
SYSTEM_CREDENTIALS: Final = (
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
    "/etc/wireguard", "/etc/NetworkManager/system-connections", "/etc/krb5.keytab",
    "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
)  # fmt: skip

# Relative to the home folder. A login or an interactive shell runs each.
START_UP_FILES: Final = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".inputrc", ".xprofile",
    ".xsession", ".xsessionrc", ".xinitrc", ".pam_environment", ".gitconfig", ".vimrc",
    ".bash_completion", ".tmux.conf", ".screenrc", ".emacs", ".gdbinit",
    ".config/zsh", ".config/tmux", ".config/plasma-workspace", ".local/share/systemd",
    ".config/fish", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/git",
    ".config/nvim", "Library/LaunchAgents", ".local/bin", "bin",
)  # fmt: skip


class SandboxPolicy(NamedTuple):
    """The limits of one command."""

    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]  # neither readable nor writable
    protected: tuple[Path, ...]  # readable, and not writable even below a writable folder
    revealed: tuple[Path, ...]  # readable although below a hidden folder
    installation: tuple[Path, ...]  # the program files of Hermes: readable, never writable
    temporary: Path  # the private folder that stands for /tmp
    has_network: bool = False
    has_allowed_hosts: bool = False  # the proxy to `agent.allowed_hosts`, if there are any
    has_local_sockets: bool = False
    is_limited: bool = True  # False: no file limits beyond what is hidden
    reopened: tuple[Path, ...] = ()  # writable although below a protected folder
    visible: tuple[Path, ...] = ()  # readable below /tmp, where a sandbox shows another folder
    protects_git: bool = True  # whether hooks of repositories are restored afterwards


def policy_as_json(policy: SandboxPolicy) -> JsonObject:
    """The fields of a policy, for another process."""
    fields = policy._asdict()
    paths = {
        name: list(map(str, value)) for name, value in fields.items() if isinstance(value, tuple)
    }
    return {**fields, **paths, "temporary": str(policy.temporary)}


def policy_from_json(fields: JsonObject) -> SandboxPolicy:
    """The policy that `policy_as_json` described."""
    values: dict[str, Any] = dict(fields)
    for name, value in fields.items():
        if isinstance(value, list):
            values[name] = tuple(Path(str(item)) for item in value)
    policy = SandboxPolicy(**values)
    return policy._replace(temporary=Path(policy.temporary))


def sandbox_environment(inherited: Mapping[str, str], temporary: Path) -> dict[str, str]:
    """The environment of a limited command: caches and temporary files where it may write."""
    caches = temporary / "cache"
    return {
        **inherited,
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(caches),
        "npm_config_cache": str(caches / "npm"),
        "GOCACHE": str(caches / "go-build"),
    }


def credential_paths(home: Path) -> tuple[Path, ...]:
    """Files and folders with credentials that exist."""
    found = [path for name in CREDENTIALS if _exists(path := home / name)]
    found += [home / name for name in CREDENTIALS_BY_CONTENT if _holds_credential(home / name)]
    found += [path for name in SYSTEM_CREDENTIALS if _exists(path := Path(name))]
    return tuple(found)


def start_up_paths(home: Path) -> tuple[Path, ...]:
    """Files and folders that run when the user logs in or opens a shell, existing or not."""
    return tuple(home / name for name in START_UP_FILES)


def _exists(path: Path) -> bool:
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _holds_credential(path: Path) -> bool:
    try:
        return CREDENTIAL_TEXT.search(path.read_bytes()[:65_536]) is not None
    except OSError:
        return False


def git_folders(workspace: Path) -> tuple[Path, ...]:
    """The git directory that a working folder belongs to, and the common one of a worktree."""
    for folder in (workspace, *workspace.parents):
        entry = folder / ".git"
        if entry.is_symlink():  # a command could point it to any folder
            return ()
        if entry.is_dir():
            return (entry,)
        if entry.is_file():
            return tuple(_linked_git_folders(folder, entry))
    return ()


def _linked_git_folders(folder: Path, entry: Path) -> Iterator[Path]:
    """The git directory of a worktree or a submodule, which names it in a file.

    A command can write that file, so it is believed only where the git directory, which the
    command cannot write, points back to this folder.
    """
    target = _first_line(entry).partition("gitdir:")[2].strip()
    if not target:
        return
    private = Path(os.path.realpath(folder / target))
    if private.parent.name == "worktrees" and _leads_to(
        private, _first_line(private / "gitdir"), entry
    ):
        yield private
        yield private.parent.parent
    elif _leads_to(private, _worktree(private / "config"), folder):
        yield private


def _leads_to(base: Path, target: str, expected: Path) -> bool:
    return bool(target) and os.path.realpath(base / target) == os.path.realpath(expected)


def _worktree(config: Path) -> str:
    """The `core.worktree` of a submodule's git directory."""
    try:
        text = config.read_text("utf-8", errors="replace")[:65_536]
    except OSError:
        return ""
    match = re.search(r"^\s*worktree\s*=\s*(.+?)\s*$", text, re.MULTILINE)
    return match[1] if match else ""


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(4096).strip()
    except OSError:
        return ""


def without_nested(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The paths that are not below another one of them, each once."""
    unique = sorted({Path(os.path.realpath(path)) for path in paths})
    kept: list[Path] = []
    for path in unique:
        if not any(path.is_relative_to(parent) for parent in kept):
            kept.append(path)
    return tuple(kept)
