"""A stack's folder that is not as it was, while its cluster lives: what needs it says so at once, and `down` works."""

from __future__ import annotations

from tests.integration.rehearsed import Rehearsed


def refused(cluster: Rehearsed, *words: str) -> str:
    done = cluster.run(*words)
    assert done.exit_code == 2, done.text
    return done.stderr


def test_a_cluster_without_its_program_its_folder_or_its_file_is_ended(ready: Rehearsed) -> None:
    cluster, beside = ready, ready.folder.parent
    name = f"{cluster.name}@rehearsal"
    program = cluster.folder / "__main__.py"
    program.rename(beside / "program")
    for words in (("extend", "1h"), ("replace", "--node", "0")):
        assert f"{cluster.folder} has no __main__.py, the program that Pulumi runs" in refused(cluster, *words)
    (beside / "program").rename(program)

    was, cluster.folder = cluster.folder, cluster.folder.rename(beside / "moved")
    stderr = refused(cluster, "down", "--cluster", name)
    assert f"the folder of {name}'s stack, {was}, is not there any more" in stderr
    hint = f"clusterctl nodes --stack {cluster.folder}"
    assert f"next: {hint}" in stderr
    cluster.ok(*hint.split()[1:])
    assert cluster.inventory()["stack_dir"] == str(cluster.folder)
    cluster.ok("extend", "1h")

    (cluster.folder / "cluster.yaml").write_text("name: [\n")
    cluster.lose_home()
    assert "nothing of it is left, nothing bills" in cluster.run("down", str(cluster.folder)).stderr
    again = cluster.run("down", str(cluster.folder))
    assert again.exit_code == 2, again.text
