"""The wording of a model card: the README.md beside a trained model in the hub's format; base model.

It is written from the training's record (``results/training.json``). A model is evaluated after its card was written,
so the scores come in when it is pushed (``cdp.services.models``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdp.base.text import public
from cdp.base.workspace import Workspace
from cdp.retrievers import model_files, spelling
from cdp.retrievers.presets import DENSE, MULTI_VECTOR, PRESETS, SPARSE
from cdp.retrievers.resolve import ResolvedRetriever, began_with, card_file, chain

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# What a card calls the model where it is loaded; its name on the hub once it is there.
FOLDER = "path/to/this/folder"

# Where the scores of a pushed model stand.
NO_SCORES = "`cdp models show` lists the scores; `cdp models push` puts them here."

SIMILARITY = {DENSE: "cosine", MULTI_VECTOR: "MaxSim", SPARSE: "dot product"}

READERS = "\nFolders in this spelling were tested in sentence-transformers {}: the vectors are equal to 1e-6.\n"

_BODY = """
# {title}

{warnings}A {kind} retriever trained with CDP Studio from **{base}** on queries for documents of the corpus `{corpus}`.

```python
from sentence_transformers import {reader}

model = {reader}("{folder}")
queries = model.encode_query(["your query"])
documents = model.encode_document(["your document"])
scores = model.similarity(queries, documents)   # {similarity}
```
{readers}
## Training

InfoNCE with in-batch negatives, weighting **{weighting}**, on {pairs:,} pairs over {documents:,} documents ({queries}):
{steps:,} steps of {batch_size} pairs. All settings stand in the record.
{notes}
## Results

{scores}

## Licences

{licences}

## Record

```json
{record}
```
"""


def model_card(
    result: Mapping[str, Any],
    retriever: ResolvedRetriever,
    queries: str,
    languages: Sequence[str],
    licences: Mapping[str, str],
    workspace: Workspace,
    title: str,
    readers: Sequence[str] = (),
) -> str:
    """Return the card of a training from its record.

    ``retriever`` is what it started from, ``queries`` what it was trained on, in words; ``readers`` are the versions of
    sentence-transformers in which such folders were tested.
    """
    from huggingface_hub import ModelCard, ModelCardData

    notes = [str(note) for note in result["notes"]]
    warnings = [note for note in notes if note.startswith("**")]
    base = _hub_base(retriever, workspace)
    data = ModelCardData(
        model_name=title,
        language=list(languages) if len(languages) > 1 else languages[0],
        license=retriever.licence_id or None,
        base_model=base or None,
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=["sentence-transformers", f"{retriever.kind}-retrieval", "cdp-studio", f"dataset_size:{result['pairs']}"],
    )

    body = _BODY.format(
        title=title,
        warnings="".join(map("> {}\n\n".format, warnings)),
        kind=retriever.kind,
        reader=model_files.READERS[retriever.kind],
        similarity=SIMILARITY[retriever.kind],
        base=public(retriever.name),
        queries=queries,
        readers=READERS.format(", ".join(readers)) if readers else "",
        folder=FOLDER,
        **{key: result[key] for key in ("corpus", "weighting", "pairs", "documents", "steps", "batch_size")},
        notes="".join(map("\n- {}".format, notes)) + "\n" * bool(notes),
        scores=NO_SCORES,
        licences="\n".join(f"- **{what.capitalize()}**: {terms}" for what, terms in licences.items()),
        record=json.dumps(public(result), ensure_ascii=False, indent=2),
    )
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n{body}"))


def save_model(model: SentenceTransformer, folder: Path, card: Callable[[Sequence[str]], str]) -> None:
    """Fill a folder with a trained model and its card: ``model_card`` but for its ``readers``."""
    readers = spelling.TESTED if spelling.save(model, folder) else ()
    card_file(folder).write_text(card(readers), encoding="utf-8")


def _hub_base(retriever: ResolvedRetriever, workspace: Workspace) -> str:
    """The hub's name of the model that a training starts from, however many trainings lie between; else empty."""
    first = [began_with(*training) for training in chain(workspace, retriever.name)][-1:]
    preset = retriever.preset or PRESETS.get("".join(first))
    if preset is None and retriever.origin != "hub":
        return ""

    source = retriever.source if preset is None else preset.source
    return source if re.fullmatch(r"[\w.\-]+/[\w.\-]+", source) else ""


def licence_in(path: Path) -> str:
    """Return the licence in a card's metadata; empty where there is none that can be read."""
    import yaml

    try:
        _, metadata, _ = re.split(r"^---\s*$", path.read_text(encoding="utf-8-sig"), maxsplit=2, flags=re.MULTILINE)
        declared = yaml.BaseLoader(metadata).get_single_data()  # texts only: another field's value may be an error
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return ""

    licence = declared.get("license", "") if isinstance(declared, dict) else ""
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence)
