"""The table of measures, in the order in which they are shown. Adding a measure is adding a file and its line here."""

from __future__ import annotations

from cdp.metrics.cw import MEASURE as CW
from cdp.metrics.dist_sim import MEASURE as DIST_SIM
from cdp.metrics.embedding_diversity import MEASURE as EMBEDDING_DIVERSITY
from cdp.metrics.len_sim import MEASURE as LEN_SIM
from cdp.metrics.measure import Measure
from cdp.metrics.paraphrase_ratio import MEASURE as PARAPHRASE_RATIO
from cdp.metrics.paraphrase_ratio import STAND_IN as PARAPHRASE_RATIO_BI_ENCODER
from cdp.metrics.self_bleu import MEASURE as SELF_BLEU

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        DIST_SIM,
        LEN_SIM,
        PARAPHRASE_RATIO,
        PARAPHRASE_RATIO_BI_ENCODER,
        SELF_BLEU,
        EMBEDDING_DIVERSITY,
        CW,
    )
}
