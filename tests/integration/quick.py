"""Which tests `scripts/test` runs when nothing more is asked for: some of each layer, six minutes on two cores.

All others run with `scripts/test --all` alone. A new test is quick if no quick one executes the code that it
tests and it takes less than ten seconds. What boots a systemd machine or waits for minutes is not, but for one.
"""

from __future__ import annotations

QUICK = (
    # The agent and its scripts, as processes.
    "barrier/test_start_barrier.py",
    "bootstrap/test_disk_script.py",
    "bootstrap/test_install_script.py",
    "bootstrap/test_membership_installer.py",
    "bootstrap/test_shell_scripts.py",
    "test_bootstrap_guard.py",
    # SSH, files and output against sshd on loopback.
    "cli/test_cli_start.py",
    "cli/test_cli_status.py",
    "cli/test_cp.py",
    "cli/test_logs.py",
    "cli/test_node_following.py",
    "cli/test_node_group.py",
    "cli/test_price_refresh.py",
    "cli/test_ssh_connection.py",
    "cli/test_ssh_faults.py",
    "cli/test_ssh_one_node.py",
    "cli/test_ssh_one_session.py",
    "cli/test_ssh_round_trips.py",
    "cli/test_ssh_several_nodes.py",
    "cli/test_ssh_terminal.py",
    "cli/test_ssh_warm.py",
    "jobs/test_check_network.py",
    "jobs/test_measure_infiniband.py",
    "jobs/test_name_server.py",
    "jobs/test_nslookup.py",
    "jobs/test_task_program.py",
    "cli/test_ssh_ways.py",
    "cli/test_standard_streams.py",
    "cli/test_sync.py",
    "cli/test_top.py",
    # The engine, our provider and the stand-in for AWS, with machines that are only written down.
    "skeleton/test_background.py",
    "skeleton/test_program_run.py",
    "skeleton/test_setup.py",
    "skeleton/test_pulumi_wrapper.py",
    "skeleton/test_with_time.py",
    "test_engine_rehearsal.py",
    "test_kill_up.py::test_an_up_after_one_whose_plugin_was_killed_makes_all_of_it",
    "test_kill_up.py::test_whatever_is_killed_the_next_command_puts_it_right[cli-",
    "test_money.py",
    "test_provider_engine.py",
    "test_real_stack.py",
    "test_region_process.py",
    "test_stand_in_engine.py::test_a_program_comes_up_changes_nothing_and_goes",
    "test_stand_in_engine.py::test_a_wrong_settings_file_is_refused_before_anything",
    "test_up_all_or_nothing.py",
    # Clusters whose machines run: as processes, and one that systemd boots.
    "lifecycle/test_from_up_to_down.py::test_a_cluster_comes_up_works_together_and_goes_without_a_trace",
    "lifecycle/test_process_machines.py",
    "machines/test_machines_process.py",
)
"""Files, or how the names of tests begin, below `tests/integration`."""


def is_quick(test: str) -> bool:
    """Whether the table has the test, named from `tests/integration` on."""
    return test.startswith(QUICK)
