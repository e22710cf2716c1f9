"""Make `python -m elmore` the same as `elmore`."""

from elmore.cli.app import main

if __name__ == "__main__":
    main()
