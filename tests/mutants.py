"""Twenty faults in the centre, each a change of one line, that the tests must catch: ``python -m tests.mutants``.

Each fault is put into a copy of the working tree and the tests named beside it run there until the first failure. The
command prints a line per fault and exits with 1 if one was not caught. ``python -m tests.mutants 3 17`` tries two.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.support import REPOSITORY


@dataclass(frozen=True)
class Fault:
    """A line of ``cdp/``, what it is replaced by, and the tests that should notice."""

    name: str
    line: str
    instead: str
    tests: str


FAULTS = (
    Fault(
        "NDCG discounts by one rank too many",
        "ranks.grade / np.log2(np.maximum(ranks.rank, 1) + 1)",
        "ranks.grade / np.log2(np.maximum(ranks.rank, 1) + 2)",
        "tests/evaluation",
    ),
    Fault(
        "judged queries without a result are left out of the mean",
        "return {name: float(values.mean()) for name, values in per_query.items()}, per_query, ranks.absent",
        "return {n: float(v[v > 0].mean()) for n, v in per_query.items()}, per_query, ranks.absent",
        "tests/evaluation tests/workers",
    ),
    Fault(
        "documents of equal score by ascending id",
        '(scores[row, j], ids[documents[row, j]] if documents[row, j] >= 0 else ""),\n            reverse=True,',
        '(-scores[row, j], ids[documents[row, j]] if documents[row, j] >= 0 else ""),\n            reverse=False,',
        "tests/evaluation",
    ),
    Fault(
        "a query retrieves the document that it was made from",
        "return [sorted({numbers[d] for d in self.excluded.get(query, ())}) for query in self.query_ids]",
        "return [[] for query in self.query_ids]",
        "tests/benchmarks tests/evaluation",
    ),
    Fault(
        "a document serves as its own negative",
        "else (answers[:, :, None] == index).any(1)",
        "else (answers[:, :, None] == index).any(1) & False",
        "tests/training",
    ),
    Fault(
        "weights normalised per process",
        "dist.all_reduce(totals)",
        "pass",
        "tests/training",
    ),
    Fault(
        "RI without its cap",
        "(losses.detach() / reasoned.detach().clamp_min(RI_FLOOR)).clamp_max(kappa)",
        "(losses.detach() / reasoned.detach().clamp_min(RI_FLOOR))",
        "tests/training",
    ),
    Fault(
        "the last dev checkpoint is kept, not the best",
        "if outcome.best_score is None or score > outcome.best_score:",
        "if True:",
        "tests/training tests/workers",
    ),
    Fault(
        "every epoch in the same order",
        "np.random.default_rng([self.seed, epoch]).permutation(self.pairs)",
        "np.random.default_rng([self.seed, 0]).permutation(self.pairs)",
        "tests/training/test_pairs.py",
    ),
    Fault(
        "equal documents count as different ones",
        "index = index_of_content.setdefault(content_hash, len(texts))",
        "index = len(texts)",
        "tests/training",
    ),
    Fault(
        "CW weights without their cap",
        "capped = np.minimum(values, kappa)",
        "capped = values",
        "tests/complexity",
    ),
    Fault(
        "single letters count as content words",
        "yield {word for word in distinct if len(word) > 1}",
        "yield set(distinct)",
        "tests/complexity",
    ),
    Fault(
        "Self-BLEU takes the longer of two equally close references",
        "key=lambda o: (abs(o - length), o)",
        "key=lambda o: (abs(o - length), -o)",
        "tests/metrics",
    ),
    Fault(
        "Holm's correction multiplies by one less",
        "(len(p_values) - rank) * p_values[index]",
        "(len(p_values) - rank - 1) * p_values[index]",
        "tests/base tests/services",
    ),
    Fault(
        "a leak is not refused",
        "for leak in () if allow_leakage else leaks:",
        "for leak in ():",
        "tests/services tests/pages",
    ),
    Fault(
        "an incomplete query set is not refused",
        "for item in () if allow_incomplete else list_incomplete(workspace, names):",
        "for item in ():",
        "tests/services tests/faults",
    ),
    Fault(
        "a stale lock is taken for a live one",
        "    if not lock_held and phase != SUBMITTED:",
        "    if not lock_held and files.failure:",
        "tests/jobs",
    ),
    Fault(
        "the newest job comes first in the queue",
        "key=lambda name: name.sequence)",
        "key=lambda name: -name.sequence)",
        "tests/jobs",
    ),
    Fault(
        "an answer is found again with other parameters",
        "json.dumps(parameters, sort_keys=True, default=str))",
        '"")',
        "tests/synthesis",
    ),
    Fault(
        "no difference counts as a positive one",
        "by_dataset[d.dataset, d.cw].append(d.points > 0)",
        "by_dataset[d.dataset, d.cw].append(d.points >= 0)",
        "tests/principle",
    ),
)


def caught(fault: Fault, tree: Path) -> tuple[bool, str]:
    """Whether a test fails with the fault that passes without it, and which one did."""
    holding = [path for path in (tree / "cdp").rglob("*.py") if fault.line in path.read_text(encoding="utf-8")]
    if len(holding) != 1 or holding[0].read_text(encoding="utf-8").count(fault.line) != 1:
        return False, f"the line stands in {len(holding)} files"
    right = holding[0].read_text(encoding="utf-8")
    holding[0].write_text(right.replace(fault.line, fault.instead), encoding="utf-8")
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run([*pytest, "-n", "2", *fault.tests.split()], cwd=tree, capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    # With several processes pytest calls the first failure an interruption: 2 instead of 1.
    if done.returncode not in (1, 2) or not failed:
        return False, done.stdout.strip().splitlines()[-1]
    holding[0].write_text(right, encoding="utf-8")
    name = failed[0].removeprefix("FAILED ").partition(" - ")[0]
    again = subprocess.run([*pytest, "-n", "0", name], cwd=tree, capture_output=True, text=True)
    return again.returncode == 0, name if again.returncode == 0 else f"{name} fails without the fault too"


def main(numbers: list[int]) -> int:
    missed = 0
    for number, fault in enumerate(FAULTS, start=1):
        if numbers and number not in numbers:
            continue
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "repository"
            shutil.copytree(REPOSITORY, tree, ignore=shutil.ignore_patterns(".git", ".venv", "build", ".*_cache"))
            found, by = caught(fault, tree)
        missed += not found
        print(f"{number:2d} {'caught' if found else 'MISSED'}: {fault.name}: {by[:200]}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main([int(number) for number in sys.argv[1:]]))
