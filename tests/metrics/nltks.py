"""NLTK, the oracle of Self-BLEU, without what it would load along."""

from cdp.base.imports import WITH_NLTK, without

with without(*WITH_NLTK):
    from nltk.tokenize import wordpunct_tokenize
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

__all__ = ["SmoothingFunction", "sentence_bleu", "wordpunct_tokenize"]
