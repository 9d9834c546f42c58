"""Runs: folders in which training leaves what is needed to go on after anything happens."""
