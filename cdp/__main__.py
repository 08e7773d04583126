"""``python -m cdp``: the entry of the command line."""

from cdp.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
