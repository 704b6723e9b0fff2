"""Which tests `make test` runs, and which only `make test-all`.

`make test` is what a newcomer runs: it needs Python, and Node.js for the page, and at most two CPU
seconds per test. A test that needs another program, a server, a browser or a download, or more
time, is left out by the pattern of its ID, unless it is a smoke test: one for each front end,
platform and kind of kill that nothing else in `make test` starts as a user would.
"""

from __future__ import annotations

import re
from typing import Final

LEFT_OUT: Final = (
    # Servers, browsers and client programs
    r"tests/browser/",
    r"tests/gateway/test_(matrix\w*|deletions|email)\.py",
    r"tests/plugins/irc/test_(gateway|capabilities)\.py",
    r"tests/acp/test_acpx\.py",
    r"tests/imports/test_agent_programs\.py",
    r"tests/(cli/test_store|achievements/test_shared_ledger|state/test_(store_copy|postgres_store))\.py",
    r".*\[postgresql\b",
    # Other shells, terminals, editors, formatters; packages that are built or downloaded
    r"tests/cli/test_(completion|tmux|launcher|installation|models|first_model|demo)\.py",
    r"tests/cli/test_(unwritable_disk|achievements_read_only)\.py",
    r"tests/(tui/test_(daemon|input_on_a_terminal|external_editor)|tui_gateway/test_shared_sessions)\.py",
    r"tests/agent/test_local_model\.py",
    r"tests/agent/tools/test_search_files\.py::.*ripgrep",
    r"tests/tools/test_(run_tests|scheduling|seeded_faults|coverage|platforms|string_keys)\.py",
    # Campaigns, and what takes long
    r"tests/(acceptance|benchmarks)/",
    r"tests/security/test_(attack_commands|everyday_commands|git_hooks|hidden_commands)\.py",
    r"tests/security/test_(landlock|unprivileged_user|server_limits|symlink_races|allowed_hosts)\.py",
    r"tests/security/test_rights_of_people\.py::test_a_command_of_a_member_sees_only_the_folder",
    r"tests/security/test_file_tools\.py::test_a_link_that_changes_during_a_search",
    r"tests/cli/test_(backup\w*|export|move|restore_safety|mcp_serve)\.py",
    r"tests/cli/test_config_safety\.py::test_nested_aliases",
    r"tests/cli/test_achievements\.py::test_(the_file_name_sets_the_format|on_a_terminal_nothing)",
    r"tests/achievements/test_metrics_equal_reference\.py",
    r"tests/agent/(test_mcp_shutdown|checkpoints/test_kills|permissions/test_disguises)\.py",
    r"tests/agent/test_mcp\.py::test_(tools_are_found_and_called|an_http_server_may_disappear)",
    r"tests/dashboard/test_(openapi|numbers_recomputed|plugin_tabs|model_catalog|mcp_servers)\.py",
    r"tests/(docs/test_names_of_the_original|core/test_command_name)\.py",
    r"tests/gateway/test_(invalid_payloads|reminders|buttons|plugin_platform|process)\.py",
    r"tests/plugins/test_hook_calls\.py",
    r"tests/state/test_(state_machine\.py|lifecycle\.py::test_random|messages\.py::test_fifty_megabytes)",
    r"tests/state/test_search\.py::test_the_index_gives_the_same_results_as_a_scan",
    r"tests/state/test_questions\.py::test_frequent_words_are_found_wherever_the_filters_lead",
    r"tests/tui/test_(app\.py::test_the_screenshots|dialogs\.py::test_keys_meant_for_the_input)",
)
SMOKE: Final = frozenset({
    # Front ends; tests/tui, tests/tui_gateway, tests/dashboard and tests/acp have more
    "tests/acceptance/test_visits.py::test_the_daemon_changes_nothing",
    "tests/acceptance/test_visits.py::test_the_page_changes_nothing",
    "tests/acceptance/test_visits.py::test_line_mode_changes_nothing",
    "tests/acceptance/test_visits.py::test_an_editor_changes_nothing",
    "tests/cli/test_mcp_serve.py::test_another_agent_lists_searches_and_reads",
    "tests/gateway/test_process.py::test_a_locked_history_is_reported_by_every_front_end",
    # Kills
    "tests/acceptance/test_kill.py::test_kills_at_random_lose_nothing_acknowledged",
    "tests/acceptance/test_power_loss.py::test_a_power_cut_loses_nothing_acknowledged",
    "tests/acceptance/test_disk_full.py"
    "::test_a_full_disk_loses_nothing_and_needs_no_restart[journal on the same disk]",
    "tests/acceptance/test_locked_database.py"
    "::test_messages_of_a_killed_process_are_stored_by_the_next",
    "tests/acceptance/test_signals.py"
    "::test_signals_lose_nothing_and_end_the_process[SIGTERM, no handler]",
    "tests/acceptance/test_exits.py::test_an_orderly_end_of_chat[SIGTERM-mid_stream]",
    "tests/acceptance/test_exits.py::test_an_orderly_end_of_chat[the window is closed-mid_tool]",
    "tests/acceptance/test_exits.py::test_closing_a_conversation_of_the_server[close-rpc_mid_stream]",
    "tests/acceptance/test_boundary_kinds.py::test_a_crash_of_a_terminal",
    "tests/acceptance/test_request_history_processes.py::test_after_a_kill_in_mid_tool",
    "tests/acceptance/test_delivery.py::test_no_event_is_lost_when_dispatchers_are_killed",
    "tests/acceptance/test_gateway.py"
    "::test_every_message_is_answered_once_however_often_the_gateway_is_killed",
    "tests/acceptance/test_import_kills.py::test_imports_that_are_killed_store_everything_once",
    "tests/acceptance/test_nohup.py"
    "::test_signals_ignored_by_the_parent_stay_ignored[gateway-as nohup does]",
    "tests/acceptance/test_locks.py::test_a_second_sqlite_cannot_open_the_file",
    # Platforms whose doubles need no other program
    "tests/acceptance/test_platform_kills.py"
    "::test_every_message_is_answered_once_whatever_platform_it_comes_from[discord]",
    "tests/acceptance/test_platform_kills.py"
    "::test_every_message_is_answered_once_whatever_platform_it_comes_from[slack]",
    "tests/acceptance/test_platform_kills.py"
    "::test_every_message_is_answered_once_whatever_platform_it_comes_from[telegram]",
})  # fmt: skip

_LEFT_OUT = re.compile("|".join(LEFT_OUT))


def is_quick(test_id: str) -> bool:
    """Whether `make test` runs a test."""
    return test_id in SMOKE or not _LEFT_OUT.match(test_id)


def may_have_quick_tests(path: str) -> bool:
    """Whether a file or folder has to be read to find the tests of `make test`."""
    return any(name.startswith(path) for name in SMOKE) or not _LEFT_OUT.match(path)
