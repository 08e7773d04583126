"""Which language a text is in: by its script, and where several share one, by their function words.

A guess for orientation, made without a model; it says ``unknown`` rather than guess between close relatives.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping

_LATIN = {
    "en": "the of and to a in is that for it was with as on are by this be at from or which have not an were has had "
    "his their but they been can we its would there she he you what when who will if into than then our also",
    "fr": "le la les de des du et est en un une que qui dans pour par sur au aux il elle avec son sa ses ne pas ce "
    "cette ces plus mais ou sont été nous vous leur leurs dont où comme être était fait à d'un d'une l'on c'est",
    "de": "der die das und ist in den von zu mit dem des nicht ein eine einer eines einem einen auf für im als auch es "
    "sich an werden wurde aus er sie hat nach bei um am sind noch wie über so zum zur war haben oder aber vor nur",
    "es": "el la los las de del y en que es un una por con para se su sus no al lo como más pero fue son este esta "
    "entre cuando muy sin sobre también ha hasta hay donde quien desde todo nos durante ese está era han",
    "it": "il lo la i gli le di del della dei delle degli e è in che un una per con si non al alla da dal dalla come "
    "più ma sono nel nella anche su questo questa stato era ha essere tra sul sulla fu loro quando dopo perché",
    "pt": "o os as de do da dos das e em que um uma para com por se não no na nos nas ao à mais mas foi são como ou "
    "seu sua pelo pela também ser está este esta entre quando muito sobre até isso ele ela eram tem há você",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er die als ook door bij om uit naar maar werd "
    "wordt worden hij zij deze dit hebben had over tot heeft of nog dan onder tegen kan meer was geen wel",
    "sv": "och att det i en som på är av för med till den har de inte om ett han var jag från vid kan eller sig men "
    "när efter under också ska över så finns blev än mot där hade denna detta många",
    "da": "og at det i en som på er af for med til den har de ikke om et han var jeg fra ved kan eller sig men når "
    "efter under også skal over så blev end mod hvor havde denne dette mange være blive hvad",
    "no": "og at det i en som på er av for med til den har de ikke om et han var jeg fra ved kan eller seg men når "
    "etter under også skal over så ble enn mot hvor hadde denne dette mange være hva noen ut",
    "fi": "ja on ei se että hän oli ovat mutta kun myös sen joka tai kuin ole jotka niin olla mukaan sekä hänen jos "
    "noin voi vain tämä sitä siitä jossa ollut kanssa jälkeen ennen vuonna muun",
    "pl": "i w na z się nie do że jest to o jak po od za przez dla są był była było oraz jego jej które który która "
    "przy lub ale tak tym co może ich ze także jako gdy już tylko między",
    "cs": "a v na se je že s z do o i k za jako pro po od by jsou byl byla bylo ale které který která ve jeho její "
    "nebo tak podle při až také jen když mezi své však může této byly",
    "ro": "și în de la a cu pe o un este că din nu se pentru care au fost sau mai prin ca lui sunt al ale dar după "
    "această acest între într unei unui lor fi era cel cea când până",
    "hu": "a az és hogy nem is egy volt meg van ez de csak már még mint vagy el kell ki ha azt után között amely "
    "által lehet majd ezt pedig minden több voltak során ami aki",
    "tr": "ve bir bu da de için ile olarak olan daha çok gibi kadar en ne ise sonra ancak veya ya her o mi değil "
    "göre tarafından olduğu ilk iki kendi var yok şu ama diye bunun",
    "id": "yang dan di dari untuk dengan pada dalam adalah ini itu tidak ke sebagai oleh akan atau juga telah dapat "
    "ada karena mereka ia lebih tersebut bisa saat kepada seorang secara tahun antara",
    "vi": "và của là các có trong được cho với một những không này đã người từ khi đến để như về ra cũng trên tại "
    "vào sẽ nhưng bị ông năm theo hay sau do đó nhiều",
    "sw": "na ya wa kwa ni katika la za cha kuwa hii huo yake ambayo kama pia hiyo watu wake mwaka lakini au hadi "
    "sana baada kati zaidi alikuwa ilikuwa moja vya yao",
    "yo": "ní àwọn ti tí ó ni sí fún pẹ̀lú náà wọn jẹ́ nínú láti kan fi bí kí wà yìí gbogbo sì ilẹ̀ orílẹ̀",
}

_CYRILLIC = {
    "ru": "и в не на что с по как это он она они из к за от для был была были его её но или так же при то о у а "
    "году также который которая которые во до были после если только может есть все",
    "uk": "і в не на що з по як це він вона вони із до за від для був була були його її але або так же при та о у "
    "року також який яка які після якщо тільки може є й",
    "bg": "и в не на че с по как това той тя те от за до е са беше били неговата но или така при се да през година "
    "също който която които след ако само може има във със",
    "sr": "и у не на да с по како то он она они из до за од је су био била били његов али или тако при се која који "
    "године такође после ако само може има са што",
}

_ARABIC = {
    "ar": "في من على إلى عن أن التي الذي هذا هذه مع كان كانت لا ما هو هي بين ذلك قد كما أو بعد قبل لم وقد وفي ومن "
    "حيث تم عام كل غير عند أكثر وهو ولا إن خلال",
    "fa": "و در به از که این را با است آن برای یک بر شد خود تا بود شده های ها می نیز هم یا او کرد اما دارد شود کند "
    "ای بین سال",
    "ur": "کے میں کی ہے اور سے کا کو نے یہ پر ہیں تھا کہ اس ایک تھی کر جو بھی گیا تھے وہ لیے ہوئے ان نہیں ساتھ",
}

_DEVANAGARI = {
    "hi": "के में की है और को से का एक पर यह ने कि हैं था लिए नहीं जो भी इस थे थी या वह तक कर गया अपने",
    "mr": "आणि आहे या हे होते एक की व ते मध्ये नाही असून होता त्यांनी ही आहेत हा त्या किंवा येथे म्हणून पण",
    "ne": "र छ को मा हो एक यो गर्न पनि थियो लाई भएको छन् गरेको बाट हुन् तथा उनी यस गर्ने",
}

FUNCTION_WORDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    script: {language: frozenset(words.split()) for language, words in languages.items()}
    for script, languages in (
        ("Latin", _LATIN),
        ("Cyrillic", _CYRILLIC),
        ("Arabic", _ARABIC),
        ("Devanagari", _DEVANAGARI),
    )
}


UNKNOWN = "unknown"

_SCRIPTS = {
    "Latin": "A-Za-zªº\u00c0-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u052f",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f",
    "Han": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30fa\u30fc-\u30ff",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "Devanagari": "\u0900-\u0963\u0970-\u097f",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Hebrew": "\u05d0-\u05ea",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e",
    "Bengali": "\u0980-\u09e3\u09f0-\u09fb",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Georgian": "\u10a0-\u10ff",
    "Armenian": "\u0531-\u058f",
}
_LETTERS = {script: re.compile(f"[{letters}]") for script, letters in _SCRIPTS.items()}
_WORDS = {script: re.compile(f"[{_SCRIPTS[script]}\u0300-\u036f'’]+") for script in FUNCTION_WORDS}

_ASCII = re.compile(r"[\x00-\x7f]+")
_ASCII_LETTERS = string.ascii_letters.encode()
_ASCII_WORDS = "".join(c if c.isalpha() or c == "'" else " " for c in map(chr, range(128)))
"""What ``_WORDS["Latin"]`` takes of ASCII as it is, and a space for each other character: split at them, the words are
there in a tenth of the time."""


def _listed_by(languages: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """For each function word the languages that have it."""
    by_word: dict[str, list[str]] = {}
    for language, words in languages.items():
        for word in set(words):
            by_word.setdefault(word, []).append(language)
    return by_word


_LISTED_BY = {script: _listed_by(languages) for script, languages in FUNCTION_WORDS.items()}

_ONE_LANGUAGE = {
    "Hangul": "ko",
    "Greek": "el",
    "Hebrew": "he",
    "Thai": "th",
    "Bengali": "bn",
    "Tamil": "ta",
    "Telugu": "te",
    "Georgian": "ka",
    "Armenian": "hy",
}

MIN_LETTERS = 12
MIN_SYLLABLES = 4
"""Fewer letters, or characters of a script where each is about a syllable, say too little."""

SYLLABIC_WEIGHT = 2
"""A Han character, kana or Hangul syllable carries about as much as two letters of an alphabet."""

MIN_HIRAGANA_SHARE = 0.08
MIN_KATAKANA_SHARE = 0.5
"""Running Japanese has far more hiragana than this, a Japanese name or loan word may be all katakana; Chinese text that
quotes a Japanese name has less of both."""

_EAST_ASIAN = ("Han", "Hiragana", "Katakana")

MIN_FUNCTION_WORD_SHARE = 0.08
MIN_LEAD = 1.2
"""The best language needs this share of the words from its list, and this many times the score of the next. A word's
score is split between the languages that list it, so that what they share decides nothing."""


def guess_language(text: str) -> str:
    """A two-letter ISO 639-1 code, or ``unknown``."""
    # Most letters of most texts are ASCII and need one look; the rest is looked through once per script. In UTF-8 a
    # byte below 128 is an ASCII character and nothing else.
    rest = "" if text.isascii() else _ASCII.sub("", text)
    counts = {script: len(letters.findall(rest)) for script, letters in _LETTERS.items()} if rest else {}
    data = text.encode("utf-8", "surrogatepass")
    counts["Latin"] = counts.get("Latin", 0) + len(data) - len(data.translate(None, _ASCII_LETTERS))
    counts = {script: n for script, n in counts.items() if n}
    syllabic = sum(counts.get(script, 0) for script in _EAST_ASIAN)
    weights = {s: n * (SYLLABIC_WEIGHT if s == "Hangul" else 1) for s, n in counts.items() if s not in _EAST_ASIAN}
    weights["East Asian"] = SYLLABIC_WEIGHT * syllabic
    script = max(weights, key=lambda s: weights[s])
    if 2 * weights[script] <= sum(weights.values()):
        return UNKNOWN
    enough = MIN_SYLLABLES * SYLLABIC_WEIGHT if script in ("East Asian", "Hangul") else MIN_LETTERS
    if weights[script] < enough:
        return UNKNOWN
    if script == "East Asian":
        hiragana, katakana = counts.get("Hiragana", 0), counts.get("Katakana", 0)
        japanese = hiragana >= MIN_HIRAGANA_SHARE * syllabic or katakana >= MIN_KATAKANA_SHARE * syllabic
        return "ja" if japanese else "zh"
    return _ONE_LANGUAGE.get(script) or _by_function_words(text, script)


def main_script(text: str) -> str:
    """The script that more than half of the letters of a text are in, Han and kana as one; empty where none is."""
    if text.isascii():
        return "Latin" if any(map(str.isalpha, text)) else ""
    counts = {script: script_letters(text, script) for script in (*_LETTERS, "East Asian")}
    for part in _EAST_ASIAN:
        del counts[part]
    script = max(counts, key=lambda name: counts[name])
    return script if 2 * counts[script] > sum(counts.values()) else ""


def script_letters(text: str, script: str) -> int:
    """How many letters of a script, as ``main_script`` names it, a text has; 0 for no script."""
    parts = _EAST_ASIAN if script == "East Asian" else (script,) if script else ()
    return sum(len(_LETTERS[part].findall(text)) for part in parts)


def _by_function_words(text: str, script: str) -> str:
    if script == "Latin" and text.isascii():
        found = text.lower().translate(_ASCII_WORDS).split()
    else:
        found = _WORDS[script].findall(text.lower().replace("’", "'"))
    words, total, listed_by = Counter(found), len(found), _LISTED_BY[script]
    hits = dict.fromkeys(FUNCTION_WORDS[script], 0)
    scores = dict.fromkeys(FUNCTION_WORDS[script], 0.0)
    for word, n in words.items():
        listed = listed_by.get(word)
        if listed:
            for language in listed:
                hits[language] += n
                scores[language] += n / len(listed)
    best, second = sorted(scores, key=lambda language: -scores[language])[:2]
    n_best = hits[best]
    if n_best < 2 or n_best < MIN_FUNCTION_WORD_SHARE * total or scores[best] < MIN_LEAD * scores[second]:
        return UNKNOWN
    return best


def language_shares(texts: Iterable[str]) -> dict[str, float]:
    """The share of the texts in each language, most frequent first; the shares sum to 1 (empty for no text)."""
    counts = Counter(map(guess_language, texts))
    total = sum(counts.values())
    return {language: count / total for language, count in counts.most_common()}
