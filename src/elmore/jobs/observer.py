"""Whoever follows a long job while it runs, such as the command line's display."""


class Observer:
    """Is called as a job proceeds; this one ignores everything. Jobs add methods of their own."""

    def on_message(self, text: str) -> None:
        """Receive a sentence for the user, to be kept."""

    def on_stage(self, text: str, share: float | None = None) -> None:
        """Receive what is being done now, and which share of it is done if known; 1 ends it."""
