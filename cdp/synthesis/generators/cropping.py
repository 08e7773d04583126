"""The ``cropping`` generator of dragon_s_paper: a document's sentences ranked by a cross-encoder's scores.

There is no stand-in for the cross-encoder here: with another scorer the method would not be the one that it is named
after.
"""

from __future__ import annotations

from typing import Any

from cdp.base.config import SynthesisConfig
from cdp.base.records import Document
from cdp.base.text import encodable
from cdp.llm.answers import Answer, RequestError
from cdp.synthesis.generators import Generator, GeneratorType
from cdp.synthesis.generators.local_model import locate
from cdp.synthesis.methods import Method
from cdp.synthesis.parsing import LONGEST_QUERY
from cdp.synthesis.sentences import sentences

HINT = "Set ranker to the name or folder of a cross-encoder that scores relevance."


class CroppingGenerator(Generator):
    """Up to M sentences of a document, by score; ties in the order of the document."""

    name = "cropping"

    def __init__(self, config: SynthesisConfig) -> None:
        self.model = config.ranker
        self._gpus = config.gpus
        self._encoder: Any = None

    @property
    def parameters(self) -> dict[str, object]:
        return {"ranker": self.model}

    def prepare(self) -> None:
        if self._encoder is None:
            import torch

            from cdp.retrievers.load import load_cross_encoder

            on_gpu = self._gpus != 0 and torch.cuda.is_available()
            found = locate(self.model, "cross-encoder", HINT)
            self._encoder = load_cross_encoder(found, "cuda" if on_gpu else "cpu", "float32")

    def generate(
        self, prompt: str, document: Document, method: Method, m: int, *, sample: int = 0, query: str = ""
    ) -> Answer:
        self.prepare()
        candidates = list(dict.fromkeys(text for text in sentences(document.text) if len(text) <= LONGEST_QUERY))
        if not candidates:
            raise RequestError(f"There is no sentence in it of at most {LONGEST_QUERY} characters.")
        clean = encodable(document.content)
        scores = self._encoder.predict([(encodable(text), clean) for text in candidates], show_progress_bar=False)
        best = sorted(range(len(candidates)), key=lambda i: (-float(scores[i]), i))
        return Answer(queries=tuple(candidates[i] for i in best[:m]), model=self.model)


GENERATOR = GeneratorType(
    "cropping",
    "Sentences of the document",
    "The sentences that a cross-encoder scores highest; serves the method dragon_s_paper",
    lambda config, api_key: CroppingGenerator(config),
    offered=False,
)
