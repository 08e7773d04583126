"""InfoNCE (van den Oord et al. 2018), weights per pair, RI, masked negatives, distillation; exact over processes.

The weights c of a batch enter as w_i = c_i · N / Σ c, where both N and the sum run over the *global* batch (Eq. 2 of
the paper has this form with c = min(CW, κ)). Each process returns the mean of w_i · ℓ_i over its own rows. Averaging
gradients over processes, as DDP does, then gives the gradient of the global weighted mean: the gather is differentiable
and sums what comes back to a row from every process, so no factor for the number of processes belongs in here.
Normalising by the sum of the own rows instead would be wrong whenever the processes' sums differ.

RI, the reasoning intensity of ReasonEmbed, is computed here because it needs the loss itself: a query whose reasoned
form q′ is much easier for the model than the query weighs more.

Nothing here needs a model or sentence-transformers: our own loop has the embeddings (``cdp.training.engine``).
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn

from cdp.base.errors import ConfigError, InputError

# The cap of RI (ReasonEmbed's).
RI_KAPPA = 5.0

# The least L(q′, D) that RI divides by.
RI_FLOOR = 1e-6


HALF = (torch.float16, torch.bfloat16)


class WeightedInfoNCE(nn.Module):
    """The loss of a batch of embeddings; arguments and counters as ``WeightedInfoNCELoss`` (loss.py) has them."""

    def __init__(
        self,
        scale: float = 20.0,
        gather_across_devices: bool = False,
        ri_kappa: float = RI_KAPPA,
        distil: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= distil <= 1:
            raise ConfigError(f"The weight of soft labels must be between 0 and 1, not {distil!r}.")
        if not ri_kappa > 0:
            raise ConfigError(f"The cap of RI must be positive, not {ri_kappa!r}.")
        if not scale > 0:
            raise ConfigError(f"The scale must be positive, not {scale!r}.")

        self.scale = scale
        self.gather_across_devices = gather_across_devices
        self.ri_kappa = ri_kappa
        self.distil = distil
        self._masked: Tensor | int = 0
        self._masked_total: Tensor | int = 0

    @property
    def masked(self) -> int:
        return int(self._masked)

    @property
    def masked_total(self) -> int:
        return int(self._masked_total)

    def begin_step(self, step: int, steps: int) -> None:
        """Hear which step begins, from 0, of how many."""

    def compute_loss_from_embeddings(
        self,
        embeddings: list[Tensor],
        labels: Tensor | None = None,
        reasoned: Tensor | None = None,
        teacher: Tensor | None = None,
        excluded_indices: Tensor | None = None,
    ) -> Tensor:
        """The loss of [queries, documents, hard negatives …], each (B, dim), or (B, tokens, dim) for ``MaxSimInfoNCE``;
        labels as for ``forward``.

        Labels may also be None (equal weights, nothing masked) or (B,) (weights only). ``reasoned`` (B, dim) holds the
        embeddings of q′ for RI; where a further column of the labels, after the hard negatives', is 1, the query is q′
        itself and ``reasoned`` holds q, so that RI is L(q, D) / L(q′, D) for either. ``teacher`` (B, 1 + h) holds a
        cross-encoder's scores of the document and the hard negatives, NaN for none; with ``distil`` they are soft
        labels. ``excluded_indices`` (B, k) holds the indices of further documents that are no negatives of a row, such
        as others that answer its query; below -1 for none. Returns a scalar in at least float32, in any precision
        the embeddings have.
        """
        weights, losses, intensity = self._rows(embeddings, labels, reasoned, excluded_indices)
        if teacher is not None and self.distil:
            soft, taught = self._soft(embeddings, teacher.to(losses))
            losses = torch.where(taught, (1 - self.distil) * losses + self.distil * soft, losses)
        weights = normalised(weights if intensity is None else weights * intensity)
        return (weights.to(losses.dtype) * losses).mean() + self._penalty(embeddings)

    def _penalty(self, embeddings: list[Tensor]) -> Tensor | float:
        """What is added to the loss for the embeddings themselves."""
        return 0.0

    def _soft(self, embeddings: list[Tensor], teacher: Tensor) -> tuple[Tensor, Tensor]:
        """(KL divergence of the retriever's choice among a query's own document and its hard negatives from the
        cross-encoder's, whether a row has labels for two of them), each (B,).

        As sentence-transformers' DistillKLDivLoss at temperature 1, row by row.
        """
        queries, *columns = [e.to(teacher) for e in embeddings]
        scores = self.scale * torch.stack([self._own_similarities(queries, column) for column in columns], 1)
        absent = torch.isnan(teacher)
        targets = nn.functional.log_softmax(teacher.masked_fill(absent, -torch.inf), 1)
        chosen = nn.functional.log_softmax(scores.masked_fill(absent, -torch.inf), 1)
        taught = (~absent).sum(1) > 1
        apart = torch.where(absent, 0.0, targets.exp() * (targets - chosen.masked_fill(absent, 0.0)))
        return torch.where(taught, apart.sum(1), 0.0), taught

    def _rows(
        self, embeddings: list[Tensor], labels: Tensor | None, reasoned: Tensor | None, excluded_indices: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """(weights before normalisation, losses, RI or None) of this process's rows, each (B,)."""
        if len(embeddings) < 2:
            raise ValueError(f"Queries and documents are needed, {len(embeddings)} column was given.")

        queries, *columns = [e.float() if e.dtype in HALF else e for e in embeddings]
        rows = queries.shape[0]
        weights, own, others = _read_labels(labels, rows, len(columns), queries)
        offset = 0

        if self.gather_across_devices and _distributed():
            offset = dist.get_rank() * rows
            columns, others = _gathered(columns, others)

        documents = torch.cat(columns)
        mask = _own_documents(own, excluded_indices, others, columns, offset)
        self._masked = 0 if mask is None else mask.sum()
        self._masked_total = self._masked_total + self._masked

        if mask is not None and len(columns) > 1:
            mask |= _missing(others, columns)

        losses = self._losses(queries, documents, mask, offset)

        if reasoned is None:
            return weights, losses, None

        with torch.no_grad():
            others_loss = self._losses(reasoned.to(queries.dtype), documents, mask, offset)
            of_query, of_reasoned = losses.detach(), others_loss
            swapped = _swapped(labels, len(embeddings), losses.device)
            if swapped is not None:
                of_query = torch.where(swapped, others_loss, of_query)
                of_reasoned = torch.where(swapped, losses.detach(), of_reasoned)
            return weights, losses, reasoning_intensity(of_query, of_reasoned, self.ri_kappa)

    def _losses(self, queries: Tensor, documents: Tensor, mask: Tensor | None, offset: int) -> Tensor:
        """InfoNCE of each row, (B,): row i's document is column offset + i."""
        scores = self._similarities(queries, documents) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        targets = torch.arange(offset, offset + len(queries), device=scores.device)
        return nn.functional.cross_entropy(scores, targets, reduction="none")

    def _similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        """(n_queries, n_documents): the cosine of each pair."""
        return nn.functional.normalize(queries, dim=1) @ nn.functional.normalize(documents, dim=1).T

    def _own_similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        """(n,): that of each query with the document of its row."""
        return nn.functional.cosine_similarity(queries, documents)


class MaxSimInfoNCE(WeightedInfoNCE):
    """The same over late interaction (Khattab and Zaharia 2020, Eq. 3): texts are (B, tokens, dim), zero where padded.

    Similarities are MaxSim, the sum over a query's tokens of the highest dot product with a token of the document. For
    one process: others' documents are padded to other lengths.
    """

    def _similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        products = torch.einsum("qsd,ntd->qnst", queries, documents)
        absent = ~documents.detach().ne(0).any(2)
        return products.masked_fill(absent[None, :, None, :], -torch.inf).max(3).values.sum(2)  # padded tokens add 0

    def _own_similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        absent = ~documents.detach().ne(0).any(2)
        products = torch.einsum("qsd,qtd->qst", queries, documents)
        return products.masked_fill(absent[:, None, :], -torch.inf).max(2).values.sum(1)


# Weights of the sparsity penalty of queries and documents, and the share of the steps over which it grows: those of
# SPLADE-max (Formal et al. 2021, SPLADE v2, arXiv 2109.10086) in its authors' configuration, 50,000 of 150,000 steps.
FLOPS_QUERIES, FLOPS_DOCUMENTS, GROWING = 3e-4, 1e-4, 1 / 3


class SparseInfoNCE(WeightedInfoNCE):
    """The same over weights of words (B, words): dot products, and the FLOPS penalty that keeps most weights at 0.

    The penalty is Σ_j (mean of the batch's weights of word j)², of queries and of documents (Paria et al. 2020, Eq. 4,
    arXiv 2004.05665); its weight grows quadratically. For one process: the mean is that of the own rows.
    """

    strength = 1.0
    of_queries, of_documents = FLOPS_QUERIES, FLOPS_DOCUMENTS

    def begin_step(self, step: int, steps: int) -> None:
        self.strength = min(1.0, step / max(1.0, GROWING * steps)) ** 2

    def _similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        return queries @ documents.T

    def _own_similarities(self, queries: Tensor, documents: Tensor) -> Tensor:
        return (queries * documents).sum(1)

    def _penalty(self, embeddings: list[Tensor]) -> Tensor | float:
        queries, documents = (e.float() if e.dtype in HALF else e for e in (embeddings[0], torch.cat(embeddings[1:])))
        queries, documents = queries.mean(0), documents.mean(0)
        weighted = self.of_queries * queries.square().sum() + self.of_documents * documents.square().sum()

        return self.strength * weighted


def reasoning_intensity(losses: Tensor, reasoned: Tensor, kappa: float = RI_KAPPA) -> Tensor:
    """RI = min(L(q, D) / L(q′, D), κ) (eq:ri, after ReasonEmbed), detached: (B,) and (B,) give (B,). L(q′, D) is taken
    as at least 1e-6."""
    return (losses.detach() / reasoned.detach().clamp_min(RI_FLOOR)).clamp_max(kappa)


def normalised(weights: Tensor) -> Tensor:
    """Weights (B,) with mean 1 over the global batch; all ones if the global sum is zero, NaN if a weight is NaN."""
    with torch.no_grad():
        totals = torch.stack([weights.sum(), torch.as_tensor(float(len(weights))).to(weights)])
        if _distributed():
            dist.all_reduce(totals)
        total, count = totals
        # Asked as "equal to 0", so that NaN stays NaN: "above 0" would turn one bad weight into equal ones for all.
        return torch.where(total == 0, 1.0, weights * (count / total.clamp_min(torch.finfo(weights.dtype).tiny)))


def _gathered(columns: list[Tensor], others: list[Tensor | None]) -> tuple[list[Tensor], list[Tensor | None]]:
    """Embeddings (with their gradients) and document indices of all processes."""
    # Imported only where several processes train: the library takes seconds to load.
    from sentence_transformers.util import all_gather, all_gather_with_grad

    gathered = [None if index is None else all_gather(index) for index in others]
    return [all_gather_with_grad(column) for column in columns], gathered


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def _read_labels(
    labels: Tensor | None, rows: int, columns: int, like: Tensor
) -> tuple[Tensor, Tensor | None, list[Tensor | None]]:
    """(weights (B,), own document indices (B,) or None, document indices of each column or None).

    Weights stay as precise as labels and embeddings are until they are normalised: float64 ones may be as large as
    1e100. Indices stay exact up to 2^24 in float32 labels.
    """
    if labels is None:
        return torch.ones(rows, dtype=like.dtype, device=like.device), None, [None] * columns
    labels = labels.to(like.device)
    if labels.shape[0] != rows:
        raise ValueError(f"There are {labels.shape[0]} labels for {rows} queries.")
    exact = torch.promote_types(labels.dtype, like.dtype)
    if labels.ndim == 1:
        return _sound(labels.to(exact)), None, [None] * columns
    indices = [labels[:, c].round().long().contiguous() if c < labels.shape[1] else None for c in range(1, columns + 1)]
    return _sound(labels[:, 0].to(exact)), indices[0], indices


def _swapped(labels: Tensor | None, columns: int, device: torch.device) -> Tensor | None:
    """(B,): True where a row's query is q′ and its reasoned column holds q; None where no label says so."""
    if labels is None or labels.ndim == 1 or labels.shape[1] <= columns:
        return None
    return (labels[:, columns] > 0.5).to(device)


def _sound(weights: Tensor) -> Tensor:
    """The weights (B,) as they are; InputError for one that is negative or no finite number.

    On a GPU to look would wait for all work under way, so there such a weight becomes NaN, and with it the loss.
    """
    wrong = ~(weights >= 0) | torch.isinf(weights)
    if weights.device.type != "cpu":
        return weights.masked_fill(wrong, torch.nan)
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise InputError(
            f"The weight of row {row} of the batch is {float(weights[row])}.",
            hint="Weights are finite and not negative; the loss only looks at their ratios.",
        )
    return weights


def _own_documents(
    own: Tensor | None, excluded_indices: Tensor | None, others: list[Tensor | None], columns: list[Tensor], offset: int
) -> Tensor | None:
    """Boolean (B, all documents): True where a column holds the row's own document, or one that is never its negative,
    but is not its positive."""
    if own is None:
        return None

    answers = own[:, None] if excluded_indices is None else torch.cat([own[:, None], excluded_indices.to(own)], 1)
    blocks = [
        torch.zeros(len(own), len(column), dtype=torch.bool, device=own.device)
        if index is None
        else (answers[:, :, None] == index).any(1)
        for index, column in zip(others, columns, strict=True)
    ]

    mask = torch.cat(blocks, dim=1)
    rows = torch.arange(len(own), device=own.device)
    mask[rows, offset + rows] = False

    return mask


def _missing(others: list[Tensor | None], columns: list[Tensor]) -> Tensor:
    """Boolean (all documents,): True in the places of hard negatives that are not there."""
    parts = [
        torch.zeros(len(column), dtype=torch.bool, device=column.device) if index is None else index < 0
        for index, column in zip(others, columns, strict=True)
    ]
    return torch.cat(parts)
