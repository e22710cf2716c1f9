"""What every long job shares: checkpoints, stopping, devices."""
