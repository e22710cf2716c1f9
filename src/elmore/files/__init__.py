"""What every output shares: atomic files, locks, bounded JSON."""
