"""The `allennlp` command, with its `elmo` subcommand only."""

import argparse

from elmore.compat.allennlp.commands.elmo import add_arguments

__all__ = ["main"]


def main(prog: str | None = None) -> None:
    """Run the command in `sys.argv`."""
    parser = argparse.ArgumentParser(prog=prog, description="ELMo vectors, computed by elmore")
    commands = parser.add_subparsers(title="commands", metavar="")
    help_text = "write the vectors of a tokenized file"
    add_arguments(commands.add_parser("elmo", description=help_text, help=help_text))
    args = parser.parse_args()
    if "func" in args:
        args.func(args)
    else:
        parser.print_help()
