"""A learning-rate sweep: trainings alike but for their peak learning rate, and what they show of it.

A sweep is a name and an id that its training jobs carry in their specifications; nothing else holds it together. The
report has the shape of the paper's table: each rate with its dev NDCG@10 at the checkpoints, and the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cdp.base.errors import ConfigError
from cdp.base.text import escaped
from cdp.training.plan import rate

# The paper's grid (tab:lr_sensitivity).
RATES = (2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5)

# The grid for a retriever whose own rate is not in the paper's: this many times its rate.
AROUND = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

# Checkpoints that the report has a column for; of more, evenly spaced ones and always the last.
CHECKPOINTS = 6


@dataclass(frozen=True)
class SweepRun:
    """One training. ``evaluations`` are (step, dev NDCG@10 in percent); the best is of those."""

    learning_rate: float
    job_id: str
    state: str
    steps: int = 0
    steps_planned: int = 0
    loss: float | None = None
    evaluations: tuple[tuple[int, float], ...] = ()
    problem: str = ""

    @property
    def best(self) -> float | None:
        return max((score for _, score in self.evaluations), default=None)

    @property
    def best_step(self) -> int | None:
        """The first step at which the best was reached: the model of that step is kept."""
        return next((step for step, score in self.evaluations if score == self.best), None)

    @property
    def final(self) -> float | None:
        return self.evaluations[-1][1] if self.evaluations else None

    def at(self, step: int) -> float | None:
        return dict(self.evaluations).get(step)


@dataclass(frozen=True)
class SweepReport:
    """``runs`` by ascending rate. ``chosen`` is the one with the best dev NDCG@10; of equals the lowest rate."""

    id: str
    name: str
    retriever: str
    query_set: str
    benchmark: str
    runs: tuple[SweepRun, ...]

    @property
    def chosen(self) -> SweepRun | None:
        scored = [run for run in self.runs if run.best is not None]
        return max(scored, key=lambda run: (run.best or 0.0, -run.learning_rate), default=None)

    @property
    def done(self) -> bool:
        """Whether no run can add anything any more."""
        return all(run.state in ("finished", "stopped", "failed", "lost") for run in self.runs)

    @property
    def edge(self) -> str:
        """``lowest`` or ``highest`` where the chosen rate is at that end of the grid, else empty."""
        if self.chosen is None or len(self.runs) < 2:
            return ""
        index = self.runs.index(self.chosen)
        return "lowest" if index == 0 else "highest" if index == len(self.runs) - 1 else ""

    @property
    def checkpoints(self) -> list[int]:
        """The steps that the table has a column for."""
        steps = sorted({step for run in self.runs for step, _ in run.evaluations})
        if len(steps) <= CHECKPOINTS:
            return steps
        stride = len(steps) / CHECKPOINTS
        return [steps[round((column + 1) * stride) - 1] for column in range(CHECKPOINTS)]

    @property
    def findings(self) -> list[str]:
        """What the runs say, in sentences; the first is the answer."""
        chosen = self.chosen
        if chosen is None or chosen.best is None:
            return ["No run has been evaluated yet." if not self.done else "No run came to an evaluation."]
        sentences = [
            f"Best so far: {rate(chosen.learning_rate)}, dev NDCG@10 {chosen.best:.2f} at step {chosen.best_step:,}."
            if not self.done
            else f"Chosen: {rate(chosen.learning_rate)}, dev NDCG@10 {chosen.best:.2f} at step {chosen.best_step:,}."
        ]
        others = sorted((r.best for r in self.runs if r is not chosen and r.best is not None), reverse=True)
        if others:
            sentences.append(
                f"It is {chosen.best - others[0]:.2f} points ahead of the next rate; each rate ran with one seed, so a "
                "small lead may be luck."
            )
        if self.edge and self.done:
            beyond = chosen.learning_rate * (0.4 if self.edge == "lowest" else 2.5)
            sentences.append(
                f"It is the {self.edge} rate of the grid: a {'lower' if self.edge == 'lowest' else 'higher'} one, such "
                f"as {rate(beyond)}, may be better."
            )
        lost = [run for run in self.runs if run.problem]
        sentences += [f"{rate(run.learning_rate)} {run.state}: {run.problem}" for run in lost]
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the runs with what is computed of them, the choice and the findings."""
        runs = [{**asdict(r), "best": r.best, "best_step": r.best_step, "final": r.final} for r in self.runs]
        return {
            "id": self.id,
            "name": self.name,
            "retriever": self.retriever,
            "query_set": self.query_set,
            "benchmark": self.benchmark,
            "done": self.done,
            "chosen": None if self.chosen is None else self.chosen.learning_rate,
            "edge": self.edge,
            "findings": self.findings,
            "runs": runs,
        }


def grid(default: float) -> tuple[float, ...]:
    """The paper's grid where it holds a retriever's default rate, else one around that rate."""
    return RATES if default in RATES else tuple(float(f"{factor * default:.3g}") for factor in AROUND)


def read_rates(text: str) -> tuple[float, ...]:
    """``2e-7, 1e-6`` as ascending rates. ConfigError for anything else, for one out of range, or one named twice."""
    rates = []
    for word in text.replace(";", ",").split(","):
        if not word.strip():
            continue
        try:
            value = float(word)
        except ValueError:
            raise ConfigError(f"{word.strip()!r} is no learning rate.", hint="Write numbers: 2e-7,5e-7,1e-6.") from None
        if not 0 < value <= 1:
            raise ConfigError(f"A learning rate lies above 0 and up to 1, not at {word.strip()}.")
        rates.append(value)
    if len(set(rates)) < len(rates):
        raise ConfigError("A learning rate is named twice.")
    if len(rates) < 2:
        raise ConfigError("A sweep needs at least two learning rates.", hint="Write them as 2e-7,5e-7,1e-6.")
    return tuple(sorted(rates))


def to_markdown(report: SweepReport) -> str:
    """The report as Markdown: what was found, the table, the paper's own table beside."""
    steps = report.checkpoints
    header = ["Learning rate", *(f"step {step:,}" for step in steps), "best", "at step", "final loss", "state", "job"]
    rows = [_cells(run, steps, run is report.chosen and report.done) for run in report.runs]
    lines = [
        f"# Learning rates: {escaped(report.name)}",
        "",
        f"{escaped(report.retriever)} on {escaped(report.query_set)}; dev NDCG@10 in percent on "
        f"{escaped(report.benchmark)}.",
        "",
        *(f"- {escaped(text)}" for text in report.findings),
        "",
        *_table(header, rows),
    ]
    if report.chosen is not None and report.done:
        lines += ["", "● the chosen rate."]
    return "\n".join(lines)


def _cells(run: SweepRun, steps: Sequence[int], chosen: bool) -> list[str]:
    scores = [run.at(step) for step in steps]
    return [
        rate(run.learning_rate) + (" ●" if chosen else ""),
        *("–" if score is None else f"{score:.2f}" for score in scores),
        "–" if run.best is None else f"**{run.best:.2f}**" if chosen else f"{run.best:.2f}",
        "–" if run.best_step is None else f"{run.best_step:,}",
        "–" if run.loss is None else f"{run.loss:.4f}",
        run.state,
        f"`{run.job_id}`",
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(header), "|" + "---|" * len(header), *(line(row) for row in rows)]
