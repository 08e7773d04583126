"""A wall clock that can be set: put this folder in PYTHONPATH and the shift in seconds in TEST_CLOCK_SHIFT_S.

Shifts what ``time`` and ``datetime`` say in every Python process that is started so; the monotonic clock is left
alone, as it is when an administrator sets a machine's clock.
"""

import datetime
import os
import time

_shift = float(os.environ.get("TEST_CLOCK_SHIFT_S", "0"))

if _shift:
    _time, _time_ns, _datetime = time.time, time.time_ns, datetime.datetime

    class _Shifted(_datetime):
        @classmethod
        def now(cls, tz=None):
            return _datetime.now(tz) + datetime.timedelta(seconds=_shift)

        @classmethod
        def utcnow(cls):
            return _datetime.utcnow() + datetime.timedelta(seconds=_shift)

    time.time = lambda: _time() + _shift
    time.time_ns = lambda: _time_ns() + int(_shift * 1e9)
    datetime.datetime = _Shifted
