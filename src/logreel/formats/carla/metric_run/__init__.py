"""Runs metrics of the scenario runner, which are classes in files of users, without the simulator."""
