"""The dashboard: latency during a scan with a concurrent writer, and the size of the page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
from playwright.sync_api import sync_playwright

from figures import Figure, median, percentile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from surroundings import BenchmarkContext

CHROMIUM: Final = shutil.which("chromium-headless-shell") or shutil.which("chromium")
HERMES: Final = [sys.executable, "-P", "-m", "hermes_cli"]
WRITER: Final = Path(__file__).parent / "write_steadily.py"
BARE: Final = Path(__file__).parent / "serve_bare.py"
PLUGIN: Final = "/api/plugins/hermes-achievements"
CLIENTS: Final = 8
REQUESTS: Final = 400
ROUNDS: Final = 5
PAINTS: Final = 5
MAX_SCRIPT_KB: Final = 300
CPU_REQUESTS: Final = 200
MAX_MEMORY_MB: Final = 120
CONFIG: Final = "display:\n  timezone: UTC\nplugins:\n  disabled: [none]\n"
CPU_PATHS: Final = {
    "tabs": ("/api/dashboard/plugins", 1.0),
    "scan status": (f"{PLUGIN}/scan-status", 1.0),
    "models": ("/api/models", 1.0),
    "health": ("/api/health", 1.0),
    "working folders": ("/api/workspaces", 1.0),
    "pending changes": ("/api/pending-changes", 1.0),
    "list of 20": ("/api/sessions?limit=20", 5.0),
    "detail": ("/api/sessions/{session}", 5.0),
    "overview": ("/api/overview", 5.0),
    "search": ("/api/search?q=error&limit=30", 20.0),
}
MAX_RATIO: Final = 5.0
SHARED_PATHS: Final = {
    "tabs": "/api/dashboard/plugins",
    "scan status": f"{PLUGIN}/scan-status",
    "health": "/api/health",
    "list of 20": "/api/sessions?limit=20",
    "detail": "/api/sessions/{session}",
    "search": "/api/search?q=error&limit=30",
}
PATHS: Final = {
    "achievements": f"{PLUGIN}/achievements",
    "sessions": "/api/sessions?limit=100",
    "search": "/api/search?q=error&limit=30",
}


def measure(context: BenchmarkContext) -> list[Figure]:
    """All figures of this benchmark."""
    with context.copy("seeds") as path:
        home = path.parent
        with served(home) as (link, address, token):
            load = _load(context, home, address, token)
            page = _page(context, link) if Path(CHROMIUM).exists() else []
    with context.copy("quarter") as path:
        (path.parent / "config.yaml").write_text(CONFIG, "utf-8")
        with served(path.parent) as (_, address, token):
            cpu = _cpu(context, path.parent, address, token)
            shares = _shares(context, path.parent, address, token)
    return [*load, *page, *cpu, *shares]


@contextlib.contextmanager
def served(home: Path) -> Iterator[tuple[str, str, str]]:
    """A dashboard in its own process: its link, its URL, its access token for programs."""
    environment = {**os.environ, "HERMES_HOME": str(home)}
    with subprocess.Popen(
        [*HERMES, "dashboard", "--no-open", "--json", "--port", "0"],
        stdout=subprocess.PIPE,
        env=environment,
    ) as server:
        assert server.stdout is not None
        record = json.loads(server.stdout.readline())
        token = json.loads((home / "run" / "dashboard.json").read_text("utf-8"))["token"]
        try:
            yield record["link"], record["url"], token
        finally:
            server.terminate()
    shutil.rmtree(home / "run", ignore_errors=True)


# Load


def _load(context: BenchmarkContext, home: Path, address: str, token: str) -> list[Figure]:
    """Each path: idle, then during a full scan with a concurrent writer."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=address, headers=headers, timeout=600) as client:
        client.post(f"{PLUGIN}/rescan")
        idle = {
            name: _request_times(context, address, headers, path) for name, path in PATHS.items()
        }
        with _writer(home), _rescanning(client):
            busy = {
                name: _request_times(context, address, headers, path)
                for name, path in PATHS.items()
            }
    figures = []
    for name, times in busy.items():
        base, value = percentile(idle[name], 0.95), percentile(times, 0.95)
        figures.append(
            Figure(f"{name}, p95 of {CLIENTS} clients, scan and writer", value, "ms", base, 1000)
        )
        each = median(times) / CLIENTS
        print(f"  {name}: about {1000 / each:,.0f} requests a second while busy", flush=True)
    return figures


def _request_times(
    context: BenchmarkContext, address: str, headers: dict[str, str], path: str
) -> list[float]:
    return asyncio.run(_request(address, headers, path, context.rounds(REQUESTS)))


async def _request(address: str, headers: dict[str, str], path: str, count: int) -> list[float]:
    """Times in milliseconds of requests by several concurrent clients."""
    times: list[float] = []
    limits = httpx2.Limits(max_connections=CLIENTS)
    async with httpx2.AsyncClient(
        base_url=address, headers=headers, timeout=60, limits=limits
    ) as client:

        async def run_client() -> None:
            for _ in range(max(1, count // CLIENTS)):
                started = time.perf_counter()
                response = await client.get(path)
                response.raise_for_status()
                times.append((time.perf_counter() - started) * 1000)

        await asyncio.gather(*(run_client() for _ in range(CLIENTS)))
    return times


@contextlib.contextmanager
def _writer(home: Path) -> Iterator[None]:
    with subprocess.Popen([sys.executable, str(WRITER), str(home / "state.db")]) as process:
        try:
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def _rescanning(client: httpx2.Client) -> Iterator[None]:
    """Repeat full scans from before the first request until after the last."""
    is_done = threading.Event()

    def scan() -> None:
        while not is_done.is_set():
            client.post(f"{PLUGIN}/rescan", params={"full": "true"})

    thread = threading.Thread(target=scan)
    thread.start()
    try:
        yield
    finally:
        is_done.set()
        thread.join()


# CPU time


def _cpu(context: BenchmarkContext, home: Path, address: str, token: str) -> list[Figure]:
    """CPU time of the server per request, and its memory, when the history has been counted."""
    pid = json.loads((home / "run" / "dashboard.json").read_text("utf-8"))["pid"]
    headers = {"Authorization": f"Bearer {token}"}
    figures = []
    with httpx2.Client(base_url=address, headers=headers, timeout=600) as client:
        while not client.get("/api/analytics").json()["is_complete"]:
            time.sleep(0.2)
        client.post(f"{PLUGIN}/rescan").raise_for_status()
        while client.get("/api/search", params={"q": "error"}).json()["progress"] is not None:
            time.sleep(0.5)
        session = client.get("/api/sessions", params={"limit": 1}).json()["items"][0]["id"]
        for name, (path, limit) in CPU_PATHS.items():
            count = context.rounds(CPU_REQUESTS)
            client.get(path.format(session=session)).raise_for_status()
            before = _cpu_seconds(pid)
            for _ in range(count):
                client.get(path.format(session=session)).raise_for_status()
            spent = 1000 * (_cpu_seconds(pid) - before) / count
            figures.append(Figure(f"{name}: CPU per request", spent, "ms", None, limit))
    memory = _resident_megabytes(pid)
    return [*figures, Figure("memory of the server", memory, "MB", None, MAX_MEMORY_MB)]


def _shares(context: BenchmarkContext, home: Path, address: str, token: str) -> list[Figure]:
    """The p95 of small requests, lists and search against a bare route under the same load.

    Rounds alternate, so that other processes of the machine affect all alike.
    """
    headers = {"Authorization": f"Bearer {token}"}
    times: dict[str, list[float]] = {name: [] for name in ("bare", *SHARED_PATHS)}
    count = context.rounds(REQUESTS // ROUNDS)
    with (
        _bare_server() as bare,
        httpx2.Client(base_url=address, headers=headers, timeout=600) as client,
    ):
        session = client.get("/api/sessions", params={"limit": 1}).json()["items"][0]["id"]
        with _writer(home), _rescanning(client):
            for _ in range(context.rounds(ROUNDS)):
                times["bare"] += asyncio.run(_request(bare, {}, "/", count))
                for name, path in SHARED_PATHS.items():
                    address_of = path.format(session=session)
                    times[name] += asyncio.run(_request(address, headers, address_of, count))
    base = percentile(times["bare"], 0.95)
    return [
        Figure(
            f"{name}: p95 of {CLIENTS} clients, scan and writer, against a bare route",
            percentile(times[name], 0.95), "ms", base, MAX_RATIO, "ratio",
        )
        for name in SHARED_PATHS
    ]  # fmt: skip


@contextlib.contextmanager
def _bare_server() -> Iterator[str]:
    """A Starlette application with one route; its URL."""
    with subprocess.Popen([sys.executable, str(BARE)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().decode().strip()
        finally:
            server.terminate()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


# The page


def _page(context: BenchmarkContext, link: str) -> list[Figure]:
    """Size of the scripts before the first chart, and time to first paint."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(link)
        page.get_by_role("navigation").first.wait_for()
        base = link.partition("#")[0]
        weights, paints = [], []
        for _ in range(context.rounds(PAINTS)):
            new_page = browser.new_context(storage_state=page.context.storage_state()).new_page()
            new_page.goto(base)
            new_page.get_by_role("navigation").first.wait_for()
            new_page.wait_for_timeout(1000)
            metrics: dict[str, Any] = new_page.evaluate(PAGE_METRICS)
            weights.append(metrics["bytes"] / 1000)
            paints.append(metrics["paint"])
            new_page.context.close()
        browser.close()
    return [
        Figure(
            "JavaScript before the first chart, compressed",
            median(weights),
            "kB",
            None,
            MAX_SCRIPT_KB,
        ),
        Figure("time to first paint", median(paints), "ms"),
    ]


PAGE_METRICS: Final = """() => ({
  bytes: performance.getEntriesByType("resource")
    .filter((one) => one.name.endsWith(".js"))
    .reduce((sum, one) => sum + one.encodedBodySize, 0),
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
})"""
