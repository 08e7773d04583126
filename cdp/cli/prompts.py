"""Commands on prompts: try candidates on a sample, see what was found, override the choice."""

from __future__ import annotations

import argparse
from typing import Any

from cdp.base.config import PromptTuningConfig
from cdp.base.workspace import Workspace
from cdp.cli import display
from cdp.cli.answers import DONE, config_of, say, started


def tune(workspace: Workspace, a: argparse.Namespace) -> int:
    """``prompts tune``: Algorithm 1 as a job; with ``--wait`` the table and the choice at its end."""
    from cdp.services.queries import tuning

    names = ("corpus", "target", "methods", "documents", "per_doc", "generator", "human")
    config = config_of(PromptTuningConfig, a, *names)
    job_id = tuning.start(workspace, config, prompts=tuning.read_prompts(a.prompt))
    done = started(workspace, a, job_id)
    if a.wait and not a.json and done == DONE and (tuned := tuning.result(workspace, job_id)) is not None:
        print(f"\n{table(tuned)}")
    return done


def show(workspace: Workspace, a: argparse.Namespace) -> int:
    """``prompts show JOB``: what was measured of each candidate, and which one is chosen."""
    from cdp.services.queries import tuning

    tuned = tuning.finished(workspace, a.id)
    return say(a, tuned, table(tuned))


def choose(workspace: Workspace, a: argparse.Namespace) -> int:
    """``prompts choose JOB CANDIDATE``: one's own choice in place of the algorithm's."""
    from cdp.services.queries import tuning

    tuned = tuning.override(workspace, a.id, a.candidate)
    return say(a, tuned, table(tuned))


def table(tuned: Any) -> str:
    """The candidates, nearest to the target first, then the choice and why."""
    from cdp.services import commands
    from cdp.services.queries import tuning

    ratio = "CE" if tuned.scorer["measure"] == "paraphrase_ratio" else "CE stand-in"
    rows = []
    for record in tuned.candidates:
        values = {v["name"]: v["value"] for v in record.get("measures", [])}
        cost = record.get("corpus_cost")
        rows.append(
            {
                "prompt": ("→ " if record["name"] == tuned.chosen else "  ") + record["name"],
                "distance": record.get("distance"),
                "meets it": "–" if record.get("inside") is None else f"{record['inside']:.0%}",
                ratio: values.get(tuned.scorer["measure"]),
                "Self-BLEU": values.get("self_bleu"),
                "Dist-Sim": values.get("dist_sim"),
                "Len-Sim": values.get("len_sim"),
                "CW": values.get("cw"),
                "tokens/doc": round(sum(record["tokens"].values())) if record.get("tokens") else None,
                "corpus": "–" if cost is None else f"${cost:.2f}",
                "note": record["error"],
            }
        )
    lines = [
        f"target: {tuning.TARGET_WORDS[tuned.target]}; {tuned.n_documents:,} of {tuned.n_corpus:,} documents",
        "",
        display.table(rows, list(rows[0]), "", digits=3),
        "",
        f"Chosen: {tuned.choice}. {tuned.why}",
    ]
    if tuned.overridden:
        lines.append(f"You chose {tuned.chosen} instead.")
    if tuned.scorer["note"]:
        lines.append(f"CE is stood in for by {tuned.scorer['model']}: {tuned.scorer['note']}")
    record = tuned.candidate(tuned.chosen)
    if not record["prompt"]:
        lines.append(f"Next: {commands.generate(tuning.synthesis_of(tuned))}")
    return "\n".join(lines)
