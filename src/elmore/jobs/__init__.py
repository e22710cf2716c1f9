"""Shared by all long jobs: checkpoints, stopping, observers, devices."""
