"""Language guesses by script and function words."""

from __future__ import annotations

import pytest

from cdp.complexity.guessing import language_shares
from cdp.corpus import guess_language

SENTENCES = {
    "en": "The committee met in the old library, and most of its members had read the report before they came.",
    "fr": "Le comité s'est réuni dans la vieille bibliothèque et la plupart des membres avaient lu le rapport.",
    "de": "Der Ausschuss traf sich in der alten Bibliothek, und die meisten hatten den Bericht schon gelesen.",
    "es": "El comité se reunió en la vieja biblioteca y la mayoría de los miembros ya había leído el informe.",
    "it": "Il comitato si è riunito nella vecchia biblioteca e la maggior parte dei membri aveva letto il rapporto.",
    "pt": "O comitê se reuniu na velha biblioteca e a maioria dos membros já tinha lido o relatório antes da reunião.",
    "nl": "De commissie kwam bijeen in de oude bibliotheek en de meeste leden hadden het rapport al gelezen.",
    "sv": "Kommittén träffades i det gamla biblioteket och de flesta av medlemmarna hade redan läst rapporten.",
    "fi": "Valiokunta kokoontui vanhassa kirjastossa, ja useimmat jäsenet olivat jo lukeneet raportin, joka oli pitkä.",
    "pl": "Komisja spotkała się w starej bibliotece i większość członków przeczytała już raport, który był długi.",
    "cs": "Výbor se sešel ve staré knihovně a většina členů už četla zprávu, která byla dlouhá a ne moc jasná.",
    "tr": "Komisyon eski kütüphanede toplandı ve üyelerin çoğu bu raporu daha önce okumuştu, ancak bir sorun vardı.",
    "id": "Komite itu bertemu di perpustakaan lama dan sebagian besar anggota telah membaca laporan yang panjang itu.",
    "vi": "Ủy ban đã họp trong thư viện cũ và hầu hết các thành viên đã đọc báo cáo từ trước khi đến đó.",
    "sw": "Kamati ilikutana katika maktaba ya zamani na wengi wa wajumbe walikuwa wamesoma ripoti hiyo kabla ya kuja.",
    "ru": "Комитет собрался в старой библиотеке, и большинство его членов уже прочитали доклад, который был длинным.",
    "uk": "Комітет зібрався у старій бібліотеці, і більшість його членів уже прочитали доповідь, яка була довгою.",
    "bg": "Комитетът се събра в старата библиотека и повечето членове вече бяха прочели доклада, който беше дълъг.",
    "ar": "اجتمعت اللجنة في المكتبة القديمة وكان أكثر الأعضاء قد قرأوا التقرير قبل أن يأتوا من المدينة",
    "fa": "کمیته در کتابخانه قدیمی جمع شد و بیشتر اعضا این گزارش را که بلند بود از پیش خوانده بودند",
    "hi": "समिति की बैठक पुराने पुस्तकालय में हुई और अधिकतर सदस्यों ने रिपोर्ट को पहले से पढ़ लिया था।",
    "zh": "委员会在旧图书馆开会，大多数成员来之前已经读过报告。",
    "ja": "委員会は古い図書館で開かれ、ほとんどの委員はすでに報告書を読んでいた。",
    "ko": "위원회는 오래된 도서관에서 모였고 대부분의 위원은 이미 보고서를 읽었다.",
    "el": "Η επιτροπή συνεδρίασε στην παλιά βιβλιοθήκη.",
    "he": "הוועדה התכנסה בספרייה הישנה ורוב החברים כבר קראו את הדוח.",
    "th": "คณะกรรมการประชุมกันในห้องสมุดเก่า",
    "bn": "কমিটি পুরনো গ্রন্থাগারে মিলিত হয়েছিল",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_recognised(language: str) -> None:
    assert guess_language(SENTENCES[language]) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12345 67.8 %",
        "ok",
        "def f(x): return x ** 2",
        "Lorem ipsum dolor sit amet consectetur",
        "Anna Müller Hugo Klein",
    ],
)
def test_unsure_is_unknown(text: str) -> None:
    assert guess_language(text) == "unknown"


def test_foreign_names_do_not_change_the_language() -> None:
    assert guess_language("The film 七人の侍 was made in Japan, and it is one of the best known of its time.") == "en"
    assert guess_language("作曲家のヨハン・ゼバスティアン・バッハ (Johann Sebastian Bach) はドイツで生まれた。") == "ja"
    assert (
        guess_language(
            "他是《スーパー》的作者，也是日本最有名的作家之一，出生在东京的一个小城市里，后来去了中国北京工作。"
        )
        == "zh"
    )


def test_shares() -> None:
    shares = language_shares([SENTENCES["fr"], SENTENCES["en"], SENTENCES["fr"], "?"])
    assert shares == {"fr": 0.5, "en": 0.25, "unknown": 0.25}
    assert next(iter(shares)) == "fr"
    assert language_shares([]) == {}
