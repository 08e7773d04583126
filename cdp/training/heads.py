"""What a retriever gets before its training beside its encoder: the projection of token vectors, the vocabulary head.

Both start from the token vectors that the encoder gives for a sample of the training texts, so that the first step
finds what the encoder knows: nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cdp.retrievers import MULTI_VECTOR, ResolvedRetriever
from cdp.training.tokens import TokenStore, groups, overhead_on

# Texts of a role that are looked at, evenly spaced: 40,000 tokens tell 384 directions.
SAMPLE = 256

# A word is given a weight where its logit lies so many standard deviations above its mean over the tokens: about 160
# words for a passage of MuSiQue and 40 for a question, NDCG@10 85% of the dense vectors'. At 4 it was 740 words for the
# same score. One deviation more of an average word is so much of a logit.
DEVIATIONS, LOGITS_A_DEVIATION = 5.0, 2.0

# GELU hands on what is so far above 0 as it is.
LINEAR = 6.0


def start_head(model: Any, retriever: ResolvedRetriever, stores: Sequence[TokenStore | None]) -> None:
    """Give an untrained preset the head that its training begins with, by the texts in ``stores``."""
    preset = retriever.preset
    if preset is None or not retriever.start:
        return

    states = torch.cat([_states(model, store) for store in stores if store is not None])
    if preset.kind == MULTI_VECTOR:
        assert preset.projection is not None
        project_tokens(model, principal_directions(states, preset.projection))
    else:
        start_vocabulary(model, states)


def project_tokens(model: Any, directions: Tensor) -> None:
    """Put a projection of the token vectors (ColBERT's linear layer) to ``directions``, (dim, width), before their
    normalisation."""
    from sentence_transformers.base.modules import Dense

    dim, width = directions.shape
    head = Dense(width, dim, False, None, init_weight=directions, module_input_name="token_embeddings")
    model.insert(1, head.to(model.device))


def principal_directions(states: Tensor, dim: int) -> Tensor:
    """Return the (dim, width) directions that keep the most of token vectors (n, width) scaled to length 1.

    Not centred, for dot products are what is kept (Eckart and Young 1936); the largest entry of each is positive.
    """
    unit = nn.functional.normalize(states.double(), dim=1)
    _, vectors = torch.linalg.eigh(unit.T @ unit)
    directions = vectors.T.flip(0)[:dim]
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))

    return (directions * largest.sign()).float()


def start_vocabulary(model: Any, states: Tensor) -> None:
    """Have a BERT's vocabulary head give the words nearest to the token vectors, as seen in ``states`` (n, width).

    The logit of a word is the product of its embedding with the token vector, centred and normalised, minus a threshold
    of its own, so that words near to everything stay at 0 as stopwords do.
    """
    head = model[0].model.cls.predictions
    words = head.decoder.weight.detach().double().cpu()
    mean = states.double().mean(0)
    lift = max(0.0, LINEAR - float((states - mean).min()))  # normalisation takes it away again

    read = nn.functional.layer_norm(states.double() - mean, mean.shape)
    centre = read.mean(0)
    spread = (read - centre).T @ (read - centre) / len(read)
    deviations = ((words @ spread) * words).sum(1).clamp_min(0).sqrt()
    scale = LOGITS_A_DEVIATION / float(deviations.mean())

    with torch.no_grad():
        nn.init.eye_(head.transform.dense.weight)
        head.transform.dense.bias.copy_(lift - mean)
        head.transform.LayerNorm.weight.fill_(scale)
        head.bias.copy_(-scale * (words @ centre + DEVIATIONS * deviations))


def _states(model: Any, store: TokenStore) -> Tensor:
    """The token vectors of a sample of texts by the encoder alone: float32 (tokens, width), on the CPU."""
    n = len(store.lengths)
    rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
    encoder = model.transformers_model.base_model
    was_training = encoder.training
    encoder.eval()

    found = []
    with torch.no_grad():
        for group in groups(store.lengths[rows], overhead_on(model.device)):
            read = store.features(rows[group])
            inputs = {name: read[name].to(model.device) for name in ("input_ids", "attention_mask")}
            states = encoder(**inputs).last_hidden_state
            found.append(states[inputs["attention_mask"].bool()].float().cpu())

    encoder.train(was_training)
    return torch.cat(found)
