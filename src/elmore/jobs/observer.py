"""Observers follow a long job while it runs, such as the command line's progress display."""


class Observer:
    """Base class that ignores everything; jobs extend it with methods of their own."""

    def on_message(self, text: str) -> None:
        """Receive a message for the user."""

    def on_stage(self, text: str, share: float | None = None) -> None:
        """Receive the current stage and, if known, the fraction done; 1 ends the stage."""
