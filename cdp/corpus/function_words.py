"""Frequent function words per language, grouped by script: enough to tell languages apart, not to filter text.

A word that several languages share counts for each of them; what decides is the sum over a text.
"""

from __future__ import annotations

from collections.abc import Mapping

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
