"""``python -m cdp``: the command line."""

import gc

gc.set_threshold(50_000)  # as for workers: nothing that is loaded from here on is garbage

from cdp.cli import main  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(main())
