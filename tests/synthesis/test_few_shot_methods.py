"""InPars-GBQ, SAP, DRAMA-style and a user's own prompt: how they ask, and how their answers are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.records import Document
from cdp.base.text import estimate_tokens
from cdp.base.workspace import Workspace
from cdp.llm.cache import AnswerCache
from cdp.synthesis.generate import generate_for
from cdp.synthesis.generators import Generator, make_generator
from cdp.synthesis.methods import EXAMPLES, METHODS, get_method
from cdp.synthesis.parsing import Parsed, parse_after_summary, parse_line, parse_task_query
from cdp.synthesis.run import SynthesisRun
from tests.synthesis.conftest import CorpusMaker, JobMaker
from tests.synthesis.server import KEY, MODEL, ChatServer, document_of

FEW_SHOT = ("inpars_gbq", "sap", "drama")
DOCUMENT = Document("d1", "Basalt is a dark rock. It forms when lava cools quickly.", "Basalt")
FORMS = {
    "inpars_gbq": "Good question: What is query {n}?",
    "sap": "A summary of basalt.\nQuestion: What is query {n}?",
    "drama": "Given a question, find rocks.\nQuery: What is query {n}?\nLanguage: English",
}


def openai(server: ChatServer, **settings: object) -> Generator:
    values = {"corpus": "c", "generator": "openai", "model": MODEL, "base_url": server.url, **settings}
    return make_generator(SynthesisConfig.from_dict(values), api_key=KEY)


def counting(server: ChatServer, form: str) -> Callable[[str, int], str]:
    """Answers that differ from call to call, as sampling makes them."""
    return lambda prompt, m: form.replace("{n}", str(len(server.bodies)))


@pytest.mark.parametrize("name", FEW_SHOT)
def test_one_query_is_one_call_and_several_are_sampled_with_their_own_seeds(server: ChatServer, name: str) -> None:
    server.answer = counting(server, FORMS[name])
    method = METHODS[name]
    assert generate_for(DOCUMENT, method, 1, openai(server)).queries == ["What is query 1?"]
    assert "seed" not in server.bodies[0]
    generation = generate_for(DOCUMENT, method, 4, openai(server))
    assert tuple(generation.queries) == tuple(f"What is query {i}?" for i in range(2, 6))
    assert generation.usage.requests == 4
    several = server.bodies[1:]
    assert [body["seed"] for body in several] == [0, 1, 2, 3]
    assert {body["temperature"] for body in several} == {0.8 if name == "drama" else 0.7}
    assert server.bodies[0]["temperature"] == (0.8 if name == "drama" else 0)


def test_the_published_settings_are_asked_for(server: ChatServer) -> None:
    for name in FEW_SHOT:
        server.answer = counting(server, FORMS[name])
        generate_for(Document("l", "One more sentence of it. " * 400), METHODS[name], 1, openai(server))
    inpars, sap, drama = server.bodies
    assert (inpars["max_tokens"], inpars["stop"]) == (64, ["\n"])
    assert estimate_tokens(document_of(inpars["messages"][0]["content"])) <= 256
    assert estimate_tokens(document_of(sap["messages"][0]["content"])) > 256
    assert (drama["max_tokens"], drama["top_p"]) == (256, 0.9)


def test_examples_are_in_the_prompts_as_published() -> None:
    counts = {"inpars_gbq": 3, "sap": 5, "drama": 4}
    for name, count in counts.items():
        prompt = METHODS[name].render("{braces} and <document>", 1)
        assert sum(example["document"] in prompt for example in EXAMPLES) == count
        assert "{braces} and ‹document>" in prompt
        assert prompt.count("<document>") == count + 1
        assert METHODS[name].kind == "few-shot"
    assert METHODS["inpars_gbq"].template.count("Bad question:") == 3


def test_repeated_samples_are_drawn_again_within_bounds(server: ChatServer) -> None:
    answers = iter(["a rock?", "A rock", "another?", "third one?"])
    server.answer = lambda prompt, m: next(answers)
    generation = generate_for(DOCUMENT, METHODS["inpars_gbq"], 3, openai(server))
    assert tuple(generation.queries) == ("a rock?", "another?", "third one?")
    assert generation.problems == {"duplicate": 1}
    server.answer = lambda prompt, m: "always the same?"
    before = len(server.bodies)
    generation = generate_for(DOCUMENT, METHODS["inpars_gbq"], 4, openai(server))
    assert generation.problems == {"duplicate": 5, "too_few": 3}
    assert len(server.bodies) - before == 6


def test_the_first_samples_are_paid_for_once_when_more_are_wanted(server: ChatServer, workspace: Workspace) -> None:
    server.answer = counting(server, FORMS["inpars_gbq"])
    with AnswerCache(workspace) as cache:
        three = generate_for(DOCUMENT, METHODS["inpars_gbq"], 3, openai(server), cache=cache)
        five = generate_for(DOCUMENT, METHODS["inpars_gbq"], 5, openai(server), cache=cache)
    assert five.queries[:3] == three.queries
    assert len(server.bodies) == 5


def test_the_summary_stays_beside_its_query(server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker) -> None:
    server.answer = counting(server, FORMS["sap"])
    corpus = make_corpus(2)
    job = make_job(
        corpus=corpus.id, method="sap", per_doc=2, generator="openai", model=MODEL, base_url=server.url, concurrency=1
    )
    result = SynthesisRun(job, api_key=KEY).execute()
    for line in query_sets.iter_lines(job.workspace, result["query_set"]):
        assert line["notes"] == ["A summary of basalt.", "A summary of basalt."]
        assert len(line["queries"]) == 2


@pytest.mark.parametrize(
    ("read", "answer", "queries", "notes"),
    [
        (parse_line, " What is basalt?", ("What is basalt?",), ()),
        (parse_line, '**Good question:** "What is basalt?"\nBad question: basalt', ("What is basalt?",), ()),
        (parse_line, "<think>hm</think>\n\nQuestion： 玄武岩とは？", ("玄武岩とは？",), ()),
        (parse_line, "", (), ()),
        (parse_line, "I'm sorry, I can't.", (), ()),
        (parse_after_summary, "It cools fast.\nQuestion: Why fast?", ("Why fast?",), ("It cools fast.",)),
        (parse_after_summary, "Summary: It cools.\n\n**Question:** Why?\n\nMore", ("Why?",), ("It cools.",)),
        (parse_after_summary, "It cools fast.", (), ()),
        (parse_task_query, "find it.\nQuery: Why fast?\nLanguage: English", ("Why fast?",), ("find it.",)),
        (parse_task_query, "Task: find it.\n**Query:** Why fast?", ("Why fast?",), ("find it.",)),
        (parse_task_query, "Why fast?", (), ()),
    ],
)  # fmt: skip
def test_reading_their_answers(
    read: Callable[[str, int], Parsed], answer: str, queries: tuple[str, ...], notes: tuple[str, ...]
) -> None:
    parsed = read(answer, 1)
    assert parsed.queries == queries
    assert ("too_few" not in parsed.problems) == bool(queries)
    assert parsed.notes == (notes if queries else ())


def test_a_users_own_prompt_is_used_and_stored_with_its_hash(
    server: ChatServer, make_corpus: CorpusMaker, make_job: JobMaker
) -> None:
    template = "Give {M} searches for:\n<document>\n{document}\n</document>\nWrite exactly {M}. {curly}"
    job = make_job(
        corpus=make_corpus(2).id, method="own", prompt=template, per_doc=2, generator="openai", model=MODEL,
        base_url=server.url,
    )  # fmt: skip
    result = SynthesisRun(job, api_key=KEY).execute()
    assert result["n_queries"] == 4
    assert server.bodies[0]["messages"][0]["content"].endswith("Write exactly 2. {curly}")
    manifest = query_sets.load(job.workspace, result["query_set"])
    assert manifest.parameters["prompt"] == template
    assert manifest.prompt_hash == get_method("own", template).prompt_hash


@pytest.mark.parametrize(
    ("template", "missing"), [("", "{document} and {M}"), ("{M} only", "{document}"), ("{document}", "{M}")]
)
def test_an_own_prompt_without_its_fields_is_refused(template: str, missing: str) -> None:
    with pytest.raises(ConfigError, match=f"lacks {missing}\\.".replace("{", r"\{").replace("}", r"\}")):
        get_method("own", template)


def test_rules_write_queries_for_few_shot_methods_too() -> None:
    from cdp.synthesis.generators.template import TemplateGenerator

    assert len(generate_for(DOCUMENT, METHODS["sap"], 4, TemplateGenerator()).queries) == 4


def test_every_few_shot_prompt_says_that_queries_are_in_the_document_s_language() -> None:
    """The examples are English, and without a word on it so were the queries for documents of other languages."""
    for name in FEW_SHOT:
        assert "language" in METHODS[name].template.partition(EXAMPLES[0]["document"])[0], name
