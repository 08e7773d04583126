"""What to expect on a new dataset: the published differences and those of the kept studies, in one model.

A difference is a mean plus an effect of its dataset, one of its way of training (retriever and training queries) and a
rest, all normal; datasets and ways of training are crossed. The paper's differences have their own variances, for they
lie four times as far apart. The variances are estimated by restricted maximum likelihood (Patterson & Thompson 1971),
the prediction for a new dataset and a new way of training adds all three of the own studies (of the paper where there
are too few) to the error of the mean, its degrees of freedom are Satterthwaite's. What came of it is checked by leaving
out each dataset, and each way of training.

``make reproduction`` writes the table that the product reads (``cdp.principle.recommend``) from studies that are kept.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cdp.base.condition import EQUAL_DOCUMENTS, EQUAL_PAIRS, INFONCE, PARAPHRASED, QUERY_ONLY
from cdp.base.statistics import stdtrit
from cdp.base.text import signed
from cdp.base.workspace import REPOSITORY, write_bytes
from cdp.principle.correlation import ALL, MULTI_HOP, PARAPHRASE, SCALING, differences
from cdp.principle.decide import SAME_STEPS
from cdp.principle.evidence import TEMPLATE
from cdp.principle.recommend import FILE, Prior, priors
from cdp.principle.tables import read
from cdp.studies.gains import controls
from cdp.studies.report import StudyReport
from cdp.studies.text import table

Floats = NDArray[np.float64]

# Datasets of a row at least: with three, two would be left to predict the third from.
FEWEST = 4

METHODS = REPOSITORY / "docs" / "METHODS.md"
START, END = "<!-- prior -->", "<!-- end of prior -->"


class Kind(NamedTuple):
    """What is compared, and what the trainings have equal."""

    comparison: str
    design: str
    loss: str
    per_doc: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A difference in NDCG@10 points. ``dataset`` is the family of the judged set, ``setup`` retriever and training
    queries."""

    kind: Kind
    dataset: str
    setup: str
    cw: float
    points: float
    published: bool


def published() -> Iterator[Observation]:
    """The paper's differences out of domain: trained for up to 100 epochs each, so steps grow with the pairs."""
    out = {row["dataset"] for row in read("results") if row["eval_domain"] == "OOD"}
    # Q/Doc is scaled on all datasets, paraphrases are compared with on the multi-hop ones alone.
    paraphrases = [d for d in differences(MULTI_HOP) if d.comparison == PARAPHRASE]
    for d in (*differences(ALL), *paraphrases):
        if d.dataset in out:
            kind = Kind(d.comparison, EQUAL_DOCUMENTS, INFONCE, d.per_doc)
            yield Observation(kind, d.dataset, f"{d.retriever}, MS MARCO", d.cw, d.points, True)

    cw = {row["dataset"]: row["cw"] for row in read("datasets")}
    plotted = [row for row in read("results") if row["table"] == "fig:cost_efficiency_multihop"]

    scores = {(row["retriever"], row["dataset"], row["queries_per_doc"]): row["value"] for row in plotted}
    for (retriever, dataset, per_doc), score in scores.items():
        if per_doc > 1:
            points = score - scores[retriever, dataset, 1]
            kind = Kind(SCALING, EQUAL_PAIRS, INFONCE, per_doc)
            yield Observation(kind, dataset, f"{retriever}, MS MARCO", cw[dataset], points, True)


def own(report: StudyReport) -> Iterator[Observation]:
    """A study's differences out of domain, in English, by people's or an LLM's queries, at equal weights and steps."""
    written = {source.label: source.written_by for source in report.sources}
    judged = {b.name: b for b in report.benchmarks}
    steps = {row.condition: row.steps for row in report.rows}
    for g in report.gains:
        b = judged[g.benchmark]
        usual = (g.condition.weighting, g.condition.rate, g.condition.query_source) == ("none", None, QUERY_ONLY)
        if g.comparison not in (SCALING, PARAPHRASE) or not usual or TEMPLATE in written[g.condition.source]:
            continue
        # Several paraphrases over one say nothing of several different queries.
        if g.comparison == SCALING and g.condition.method == PARAPHRASED:
            continue
        if b.language != "en" or b.in_domain or g.condition.source in b.in_domain_of:
            continue

        both = [steps[g.condition], steps[dict(controls(g.condition, steps))[g.comparison]]]
        if 0 < max(both) <= SAME_STEPS * min(both):
            pairs = g.condition.held or (report.config.held_equal if g.condition.per_doc > 1 else "")
            design = EQUAL_PAIRS if pairs == EQUAL_PAIRS else EQUAL_DOCUMENTS
            kind = Kind(g.comparison, design, g.condition.loss, g.condition.per_doc)
            # Of the paper's datasets the studies judge samples; parts of a sample are one family.
            family = b.family.removesuffix("_sample")
            yield Observation(kind, family, f"{g.condition.retriever}, {g.condition.source}", b.cw, g.points, False)


def estimate(reports: Iterable[StudyReport]) -> list[Prior]:
    """A row for each comparison, design, loss and Q/Doc that four datasets or more have."""
    groups: dict[Kind, list[Observation]] = defaultdict(list)
    for o in (*published(), *(o for report in reports for o in own(report))):
        groups[o.kind].append(o)
    order = sorted(groups, key=lambda kind: (kind.comparison != SCALING, kind[1:]))
    return [_row(kind, groups[kind]) for kind in order if len({o.dataset for o in groups[kind]}) >= FEWEST]


def _row(kind: Kind, observations: Sequence[Observation]) -> Prior:
    # Parts of a dataset, and studies with the same training, give one value.
    cells: dict[tuple[str, str], list[Observation]] = defaultdict(list)
    for o in observations:
        cells[o.dataset, o.setup].append(o)

    datasets, setups = (np.array(names) for names in zip(*cells, strict=True))
    y = np.array([np.mean([o.points for o in cell]) for cell in cells.values()])
    cw = np.array([np.mean([np.log(o.cw + 1) for o in cell]) for cell in cells.values()])
    papers = np.array([cell[0].published for cell in cells.values()])
    few = len(np.unique(datasets[~papers])) < FEWEST
    fit = Fit.of(y, datasets, setups, papers=papers)
    mean, sd, degrees = fit.predict(papers=few)

    held: dict[str, list[float]] = {}
    errors: dict[bool, list[float]] = {False: [], True: []}
    for what, names in (("dataset", datasets), ("setup", setups)):
        held[what] = []

        for left_out in np.unique(names):
            inside = names == left_out
            rest = ~inside
            if len(np.unique(datasets[rest])) < FEWEST - 1:
                continue

            for with_cw in (False, True) if what == "dataset" else (False,):
                other = Fit.of(
                    y[rest], datasets[rest], setups[rest], cw[rest] if with_cw else None, fit.variances, papers[rest]
                )
                found = np.array([other.predict(x, paper) for x, paper in zip(cw[inside], papers[inside], strict=True)])
                if what == "dataset":
                    errors[with_cw].append(float(np.mean((y[inside] - found[:, 0]) ** 2)))

                if not with_cw:
                    reach = stdtrit(found[:, 2], 0.975) * found[:, 1]
                    held[what].append(float(np.mean(abs(y[inside] - found[:, 0]) <= reach)))

    return Prior(
        **kind._asdict(),
        points=mean,
        sd=sd,
        degrees=degrees,
        datasets=len(np.unique(datasets)),
        published=len({o.dataset for o in observations if o.published}),
        setups=len(np.unique(setups)),
        covered=float(np.mean(held["dataset"])),
        covered_setups=float(np.mean(held["setup"])) if held["setup"] else float("nan"),
        error=float(np.sqrt(np.mean(errors[False]))),
        error_with_cw=float(np.sqrt(np.mean(errors[True]))),
    )


@dataclass(frozen=True)
class Fit:
    """The model fitted: ``variances`` are of datasets, setups and the rest, as far as the data tell them apart, of the
    own differences and then of the paper's (``of_paper`` marks these); ``degrees`` are the degrees of freedom of the
    sum of the own ones and of the paper's; ``covariance`` is of the ``coefficients``."""

    variances: Floats
    of_paper: NDArray[np.bool_]
    degrees: tuple[float, float]
    coefficients: Floats
    covariance: Floats
    centre: float = 0.0

    @classmethod
    def of(
        cls,
        y: Floats,
        datasets: NDArray[Any],
        setups: NDArray[Any],
        x: Floats | None = None,
        start: Floats | None = None,
        papers: NDArray[np.bool_] | None = None,
    ) -> Fit:
        """Fit ``y`` (n,), on the covariate ``x`` (n,) where there is one, with effects of datasets and setups (n,);
        ``papers`` (n,) marks the paper's, which have their own variances.

        ``start`` are the variances of a similar fit."""
        from scipy import optimize

        papers = np.zeros(len(y), bool) if papers is None else papers
        kernels, origins = [], []
        for origin in np.unique(papers):
            there = papers == origin
            for names in (datasets, setups):
                # An effect with a single level is the mean, one with a level for each observation the rest.
                if 1 < len(set(names[there])) < there.sum():
                    kernels.append((names[:, None] == names) * np.outer(there, there).astype(float))
                    origins.append(bool(origin))
            kernels.append(np.diag(there.astype(float)))
            origins.append(bool(origin))

        x = None if x is None or np.ptp(x) < 1e-9 else x
        centre = 0.0 if x is None else float(x.mean())
        design = np.ones((len(y), 1)) if x is None else np.stack([np.ones(len(y)), x - centre], 1)
        scale = max(float(y.var()), 1e-6)

        def solved(variances: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            total = sum(v * k for v, k in zip(variances, kernels, strict=True))
            inverse = np.linalg.inv(total)
            covariance = np.linalg.inv(design.T @ inverse @ design)
            projection = inverse - inverse @ design @ covariance @ design.T @ inverse
            return total, covariance, projection, covariance @ design.T @ inverse @ y

        def loss(logs: Floats) -> tuple[float, Floats]:
            variances = scale * np.exp(logs)
            total, covariance, p, _ = solved(variances)
            py = p @ y
            value = (np.linalg.slogdet(total)[1] - np.linalg.slogdet(covariance)[1] + y @ py) / 2
            gradient = np.array([np.sum(p * k) - py @ k @ py for k in kernels]) / 2
            return float(value), gradient * variances

        first = np.full(len(kernels), -1.0)

        if start is not None and len(start) == len(kernels):
            first = np.clip(np.log(start / scale), -8, 4)

        found = optimize.minimize(loss, first, jac=True, method="L-BFGS-B", bounds=[(-12, 4)] * len(kernels))

        variances = scale * np.exp(found.x)
        _, covariance, projection, coefficients = solved(variances)
        # Satterthwaite: the summed variance against the error of its estimate, from REML's expected information. A
        # variance at zero stays there and adds no error.
        of_paper = np.array(origins)
        degrees = []
        for origin in (False, True):
            total = float(variances[of_paper == origin].sum())
            kept = variances > 1e-4 * max(total, 1e-12)
            products = [projection @ k for k, used in zip(kernels, kept, strict=True) if used]
            information = np.array([[np.sum(a * b.T) / 2 for b in products] for a in products])
            inside = of_paper[kept] == origin
            error = float(np.linalg.pinv(information)[np.ix_(inside, inside)].sum()) if inside.any() else 0.0
            degrees.append(max(1.0, 2 * total**2 / error) if error > 0 else 1.0)

        return cls(variances, of_paper, (degrees[0], degrees[1]), coefficients, covariance, centre)

    def predict(self, x: float = 0.0, papers: bool = False) -> tuple[float, float, float]:
        """Return (mean, standard deviation, degrees of freedom) of a new dataset in a new way of training, at ``x``;
        with the paper's variances where asked, or where there are no others."""
        row = np.array([1.0, x - self.centre])[: len(self.coefficients)]
        own = self.of_paper == papers if (self.of_paper == papers).any() else ~(self.of_paper == papers)
        variance = row @ self.covariance @ row + self.variances[own].sum()
        degrees = self.degrees[int(self.of_paper[own][0])]
        return float(row @ self.coefficients), float(np.sqrt(variance)), degrees


def write(reports: Iterable[StudyReport]) -> Path:
    """Write the table that the product reads, and the same in docs/METHODS.md; return its file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, Prior.__dataclass_fields__, lineterminator="\n")
    writer.writeheader()
    for row in estimate(reports):
        values = {name: getattr(row, name) for name in Prior.__dataclass_fields__}
        writer.writerow({name: f"{v:.3f}" if isinstance(v, float) else v for name, v in values.items()})
    write_bytes(FILE, out.getvalue().encode())
    priors.cache_clear()
    before, _, rest = METHODS.read_text(encoding="utf-8").partition(START)
    write_bytes(METHODS, f"{before}{START}\n{text()}\n{END}{rest.partition(END)[2]}".encode())
    return FILE


HEAD = ("Comparison", "Held equal", "Loss", "Q/Doc", "New dataset (95%)", "df", "Datasets (published)",
        "Ways of training", "Held", "Held, ways", "Error", "With CW")  # fmt: skip
SHORT = {SCALING: "Q/Doc minus one", PARAPHRASE: "diverse minus paraphrase"}


def text() -> str:
    """The shipped table as Markdown."""
    rows = [
        [
            SHORT[p.comparison], p.design, p.loss, str(p.per_doc),
            f"{signed(p.points, 1)} ({signed(p.low, 1)} to {signed(p.high, 1)})", f"{p.degrees:.1f}",
            f"{p.datasets} ({p.published})", str(p.setups), f"{p.covered:.0%}",
            "–" if np.isnan(p.covered_setups) else f"{p.covered_setups:.0%}", f"{p.error:.1f}",
            f"{p.error_with_cw:.1f}",
        ]
        for p in priors()
    ]  # fmt: skip
    return table(list(HEAD), rows)
