"""`python -m allennlp.run elmo`, the older form of `allennlp elmo`."""

from elmore.compat.allennlp.commands import main


def run() -> None:
    """Run the command in `sys.argv`."""
    main(prog="allennlp")


if __name__ == "__main__":
    run()
