"""The closed word lists with which the template generator finds its way through an English sentence."""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


DETERMINERS = frozenset(_words("a an the this that these those its their his her our your my no each every some any"))
PRONOUNS = frozenset(_words("it they he she we you i this that these those both many some most others one"))
PREPOSITIONS = frozenset(
    _words(
        "in on at of to for with from by as into through during before after over under between among against "
        "about within without across along behind beyond near since until upon via per despite unlike inside "
        "outside toward towards around above below"
    )
)
AUXILIARIES = frozenset(_words("is are was were can could may might must should will would"))
CONJUNCTIONS = frozenset(_words("because which who whose that when if while whereas although though since until so"))
ADVERBS = frozenset(
    _words("rarely often usually never always sometimes also still already then thus soon later now even")
)
FUNCTION_WORDS = (
    DETERMINERS
    | PRONOUNS
    | PREPOSITIONS
    | AUXILIARIES
    | frozenset(
        _words(
            "and or but nor so yet if when while where which who whom whose what how why than then there here not "
            "only also very more most less least much many few several other another such same own too just even "
            "still already often usually never always sometimes again ever rather quite be been being am has have "
            "had having do does did doing done because although though whether either neither however therefore "
            "thus hence all up out off down once almost first second new old one two three four five six seven "
            "eight nine ten them him us me himself itself themselves well like shall upon away back never together"
        )
    )
)

_REGULAR = _words(
    "absorb accept add affect allow appear apply arrive ask attract become-became begin-began believe "
    "belong bend-bent block boil break-broke bring-brought build-built burn call carry cause change climb collect "
    "combine come-came concern connect consist contain control convert cool cost-cost cover create cross "
    "crystallise decide decline decrease define deliver demand depend describe destroy determine develop "
    "die differ discover divide draw-drew drive-drove dry eat-ate employ enable end enter escape "
    "evaporate evolve exist expand explain expose face fail fall-fell fan feed-fed fill find-found fit "
    "flash float flood flow fly-flew follow force form freeze-froze gain get-got give-gave go-went grow-grew guide "
    "happen hear-heard heat help hold-held improve include increase inspire introduce invent involve join "
    "keep-kept kill know-knew lack land lead-led learn leave-left let-let lie-lay lift limit live look "
    "loosen lose-lost make-made mark match mean-meant measure meet-met melt migrate mix move need "
    "obtain occur open operate order own pass pay-paid perform permit place play preserve press prevent "
    "produce promise protect provide publish pull pump push raise reach receive recognize recommend "
    "reduce reflect release rely remain remove replace represent require respond rest result return "
    "rise-rose rotate rule run-ran say-said see-saw seem sell-sold send-sent separate serve set-set shape "
    "share shift show shrink-shrank sink-sank slow spin-spun spoil spread-spread stand-stood start stay "
    "steer stop store stray strike-struck suffer supply support surround survive swell take-took "
    "teach-taught tell-told tend think-thought throw-threw train transfer transform trap travel turn use "
    "vary wait want warm wear-wore win-won work write-wrote yield "
    "abolish accelerate accumulate activate adopt analyze appoint assess associate attend attenuate award bind-bound "
    "block border broadcast-broadcast characterize compare compose comprise conclude confer-conferred confirm "
    "constitute contribute correlate debut defeat delay demonstrate detect differentiate direct emerge encode enhance "
    "establish evaluate examine exhibit express feature fight-fought generate graduate highlight host identify impair "
    "indicate induce inhabit inhibit interact investigate launch marry mediate modulate name nominate observe overlook "
    "persist phosphorylate predict proliferate promote propose record recruit regulate report rescue restore retire "
    "reveal score shoot-shot sign span-spanned star-starred stimulate study suggest suppress trigger underlie-underlay "
    "utilize "
    "bite-bit blow-blew buy-bought catch-caught choose-chose creep-crept cry dwell-dwelt feel-felt fetch forget-forgot "
    "hang-hung hide-hid hurry jump kneel-knelt knock laugh listen reply ride-rode seek-sought shake-shook shine-shone "
    "shout sing-sang sit-sat sleep-slept speak-spoke spend-spent steal-stole sweep-swept swim-swam tear-tore "
    "understand-understood wake-woke weep-wept facilitate elicit fuse confine hypothesize "
    "arrest attack capture celebrate close collapse command conquer damage defend demolish deploy earn elect "
    "enjoy erect "
    "export hire inherit injure invade manage merge murder premiere purchase qualify reject relocate rename renovate "
    "resign seize settle sponsor strengthen surrender transport treat unite unveil upgrade visit vote"
)


def _forms(entry: str) -> tuple[str, str, str]:
    """Base, third person and past form of a verb, by the rules of spelling where no past form is given."""
    base, _, past = entry.partition("-")
    stem = base[:-1] if base.endswith("y") and base[-2] not in "aeiou" else ""
    third = f"{stem}ies" if stem else base + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")
    doubled = base[-1] in "pbtmn" and base[-2] in "aeiou" and base[-3] not in "aeiou" and len(base) <= 4
    regular = f"{stem}ied" if stem else base + ("d" if base.endswith("e") else f"{base[-1]}ed" if doubled else "ed")
    return base, third, past or regular


# Base forms: finite only after a plural subject.
PLAIN_FORMS = frozenset(entry.partition("-")[0] for entry in _REGULAR)

# Every known finite form of a verb that is not an auxiliary, with its base form.
BASE_FORM = {form: forms[0] for entry in _REGULAR for forms in [_forms(entry)] for form in forms} | {
    "has": "have",
    "have": "have",
    "had": "have",
}

# Base forms of verbs that say how something is: "how does honey contain water" is no question anybody asks.
STATES = frozenset(
    _words(
        "have contain consist belong lack mean include cost need know exist seem remain own depend differ match fit "
        "lie stand live concern involve represent resemble appear require deserve stay keep hold"
    )
)

# Base forms that mean little without what follows: no "what did fires give" from "fires gave way".
WEAK_VERBS = frozenset(
    _words(
        "have give take become begin get go come seem remain stay appear fall stand turn keep hold lie run live lead"
    )
)

# What a person is called in the sentence that introduces them: asked for with who and not with what.
ROLES = frozenset(
    _words(
        "academic activist actor actress admiral adventurer ambassador animator anthropologist archaeologist "
        "archbishop "
        "architect aristocrat artist astronaut astronomer athlete author aviator ballerina banker baron "
        "baroness bassist "
        "biologist bishop boxer broadcaster businessman businesswoman cardinal cartoonist cellist chef chemist chess "
        "choreographer cinematographer clergyman coach colonel columnist comedian commander composer conductor "
        "countess cricketer critic curator cyclist dancer designer dictator diplomat director dj doctor dramatist "
        "drummer duchess duke economist editor emperor empress engineer entertainer entrepreneur essayist executive "
        "explorer filmmaker footballer general geographer geologist goalkeeper golfer governor guitarist gymnast "
        "historian humorist illustrator inventor investor jockey journalist judge jurist keyboardist king lawyer "
        "linguist lyricist magician manager mathematician mayor merchant midfielder minister missionary model monk "
        "musician musicologist naturalist nobleman noblewoman novelist nurse officer organist painter pastor patron "
        "percussionist performer philanthropist philosopher photographer physician physicist pianist pilot pioneer "
        "playwright poet politician pope preacher president presenter priest prince princess printer "
        "producer professor "
        "programmer psychiatrist psychologist publisher queen racer rapper referee reporter ruler sailor "
        "saint saxophonist "
        "scholar scientist screenwriter sculptor senator singer skier sociologist soldier songwriter soprano statesman "
        "striker sultan surgeon swimmer teacher tenor theologian translator trumpeter violinist vocalist warrior "
        "wrestler writer zoologist"
    )
)

# Nouns that say little alone: nobody asks what kind of part something is.
VAGUE_HEADS = frozenset(
    _words("one part member group type kind form number set name term list result example way sort")
)

# Headings that stand, in capitals, in front of a sentence of an abstract.
SECTION_LABELS = frozenset(
    _words(
        "abstract aim aims background case conclusion conclusions context design discussion findings interpretation "
        "introduction materials method methodology methods objective objectives outcomes participants patients purpose "
        "rationale result results setting settings significance summary"
    )
)

# Words that tie a sentence to the one before and say nothing alone.
CONNECTIVES = frozenset(
    _words(
        "accordingly additionally afterwards also although and as but consequently conversely eventually finally "
        "furthermore hence here hereby however indeed instead interestingly later likewise meanwhile moreover "
        "nevertheless nonetheless notably now or perhaps presumably remarkably similarly so still strikingly "
        "subsequently surprisingly then therefore though thus together today ultimately unfortunately yet"
    )
)

# First words of a subject that mean something only beside the sentence before.
POINTING = frozenset(
    _words(
        "it they he she we you i this these those that such its their his her our your my both many most some others "
        "another one each all there here who which whose whom what other same former latter him them us me"
    )
)

# Words that no query ends with.
NOT_LAST = (
    DETERMINERS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES
    | frozenset(_words("and or but nor than be been being not very more most less also both either e.g i.e mr dr vs"))
) - frozenset(_words("that this those these no some any each his her before after since above inside"))  # fmt: skip

# Past participles whose past form is not theirs by rule, or that end in no -ed.
PARTICIPLES = {
    "written": "wrote", "built": "built", "made": "made", "held": "held", "given": "gave", "taken": "took",
    "won": "won", "led": "led", "sung": "sang", "drawn": "drew", "chosen": "chose", "bought": "bought", "sold": "sold",
    "founded": "founded", "shot": "shot", "run": "ran", "begun": "began", "driven": "drove", "found": "found",
}  # fmt: skip
