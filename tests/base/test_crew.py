"""Parts done by one process, what is kept in it, and errors that travel from another."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from cdp.base.crew import Alone, Stopped, kept, name_of
from cdp.base.errors import CdpError, ConfigError, InputError, NotFoundError, RepeatedFailureError


def double(part: int) -> int:
    return 2 * part


def test_parts_are_drawn_one_by_one_and_numbered() -> None:
    drawn: list[int] = []

    def parts() -> Iterator[int]:
        for part in (5, 6, 7):
            drawn.append(part)
            yield part

    told: list[int] = []
    answers = Alone().each(double, parts(), on_done=told.append)
    assert next(answers) == (0, 10)
    assert (drawn, told) == ([5], [1])
    assert list(answers) == [(1, 12), (2, 14)]
    assert told == [1, 2, 3]


def test_a_stop_is_heard_between_parts() -> None:
    done: list[int] = []
    answers = Alone().each(double, range(5), should_stop=lambda: len(done) == 2)
    done += [next(answers)[1], next(answers)[1]]
    with pytest.raises(Stopped):
        next(answers)
    assert done == [0, 2]


def test_a_task_is_a_function_of_a_module() -> None:
    assert name_of(double) == f"{__name__}:double"
    for other in (lambda part: part, Alone.each):
        with pytest.raises(ConfigError, match="no function of a module"):
            list(Alone().each(other, [1]))  # type: ignore[arg-type]


def test_the_newest_of_each_kind_is_kept() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name

    assert [kept("model", key, lambda key=key: make(key)) for key in "aab"] == ["a", "a", "b"]
    assert kept("queries", "a", lambda: make("q")) == "q"
    assert kept("model", "b", lambda: make("b again")) == "b"
    assert kept("model", "a", lambda: make("a")) == "a"
    assert made == ["a", "b", "q", "a"]


@pytest.mark.parametrize(
    "error",
    [NotFoundError("job", "x", known=["y"]), InputError("bad", file="/a/b.json", line=3, hint="do"),
     RepeatedFailureError("twenty", kind="data", hint="look"), CdpError("plain")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_an_error_of_ours_arrives_whole_from_another_process(error: CdpError) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert (str(arrived), arrived.message, arrived.hint, arrived.kind, arrived.args) == (
        str(error), error.message, error.hint, error.kind, error.args,
    )  # fmt: skip
