"""What kinds of work commands are: tables of labels as `commands.labels` gives them."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TESTS: Final = _words(
    "pytest py.test unittest tox nox vitest jest mocha ava playwright cypress rspec phpunit "
    "ctest karma behave cucumber bats go-test tape"
) | frozenset(
    f"{program} {word}"
    for program, words in {
        "npm": "test t",
        "pnpm": "test",
        "yarn": "test",
        "bun": "test",
        "deno": "test",
        "cargo": "test nextest",
        "go": "test",
        "make": "test check tests",
        "just": "test check",
        "mvn": "test verify",
        "gradle": "test check",
        "gradlew": "test check",
        "dotnet": "test",
        "swift": "test",
        "flutter": "test",
        "rails": "test",
        "mix": "test",
        "zig": "test",
        "stack": "test",
        "cabal": "test",
        "node": "--test",
        "npm run": "test unit e2e",
        "pnpm run": "test unit e2e",
        "yarn run": "test unit e2e",
        "bun run": "test unit e2e",
    }.items()
    for word in words.split()
)
INSTALLS: Final = frozenset(
    f"{program} {word}"
    for program, words in {
        "pip": "install",
        "pip3": "install",
        "uv": "add sync",
        "uv pip": "install sync",
        "poetry": "add install",
        "npm": "install i add ci",
        "pnpm": "install i add",
        "yarn": "add install",
        "bun": "add install",
        "cargo": "add install",
        "go": "get install",
        "apt": "install",
        "apt-get": "install",
        "dnf": "install",
        "yum": "install",
        "brew": "install",
        "pacman": "-s",
        "apk": "add",
        "gem": "install",
        "composer": "require install",
        "conda": "install",
        "mamba": "install",
        "dotnet": "add",
    }.items()
    for word in words.split()
)
BUILDS: Final = _words(
    "make cmake ninja tsc vite webpack esbuild gcc g++ clang javac rustc meson bazel"
) | frozenset(
    f"{program} {word}"
    for program, words in {
        "npm run": "build",
        "pnpm run": "build",
        "yarn run": "build",
        "yarn": "build",
        "bun": "build",
        "bun run": "build",
        "cargo": "build",
        "go": "build",
        "make": "build all",
        "just": "build",
        "mvn": "package install compile",
        "gradle": "build assemble",
        "gradlew": "build assemble",
        "docker": "build",
        "dotnet": "build publish",
        "swift": "build",
        "flutter": "build",
        "zig": "build",
        "uv": "build",
        "poetry": "build",
    }.items()
    for word in words.split()
)
CHECKS: Final = (
    _words(
        "ruff mypy pyright flake8 pylint black isort eslint prettier biome clippy shellcheck "
        "golangci-lint rubocop stylelint hadolint pre-commit tflint yamllint clang-tidy gofmt"
    )
    | {"cargo clippy", "cargo fmt", "go vet", "make lint", "npm run lint", "pnpm run lint"}
    | {
        "yarn lint",
        "yarn run lint",
    }
)
CONTAINERS: Final = frozenset({"docker", "podman", "docker-compose"})
DEPLOYERS: Final = _words(
    "kubectl helm terraform tofu pulumi fly flyctl vercel netlify heroku ansible ansible-playbook "
    " aws gcloud az wrangler serverless"
)
DATABASES: Final = _words("psql sqlite3 mysql mariadb mongosh redis-cli duckdb sqlcmd")
REQUESTERS: Final = frozenset({"curl", "wget", "http", "https", "xh", "httpie"})
REMOTES: Final = frozenset({"ssh", "scp", "rsync", "sftp", "mosh"})
MERGES: Final = frozenset({"git merge", "git rebase", "git cherry-pick"})
RESCUES: Final = frozenset({"git revert", "git reset", "git restore", "git stash", "git bisect"})
# Programs whose exit code 1 is an answer: nothing found, or not the same.
ANSWERING: Final = _words("grep egrep fgrep rg ag diff cmp pgrep which test")
