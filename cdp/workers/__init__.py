"""Every kind of job in one file: its declaration, and what its background process does from start to end.

Workers compose the stages. Other rooms reach them by ``registry("job kind")``.
"""

from cdp.base.job_kind import JobKind
from cdp.base.registry import Registry

KINDS = Registry("job kind", JobKind, __name__)
