"""Every kind of job in one file: its declaration and checks, and its background process. Workers compose the stages.

Other rooms reach them by ``registry("job kind")``.
"""

from cdp.base.job_kind import JobKind
from cdp.base.registry import Registry

KINDS = Registry("job kind", JobKind, __name__)
