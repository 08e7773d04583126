"""The template generator in several processes writes what it writes in one, even when its processes are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cdp.base.records import Document
from cdp.synthesis.generators import template as module
from cdp.synthesis.generators.recorded import RecordedGenerator
from cdp.synthesis.generators.template import MIN_SPREAD, TemplateGenerator, TemplatePool, spread
from cdp.synthesis.methods import METHODS
from tests.jobs.support import lives, until

TEXT = "The harbour of {town} was built in {year} because ships needed shelter. Its walls protect boats from storms."
ODD = Document(id="odd", title="\ud800 \x00", text="\u2028 Ein Wort\n\ud83d und \x85 noch eins. 東京は首都です。 " * 3)
DOCUMENTS = [
    *(Document(id=str(n), title=f"Town {n}", text=TEXT.format(town=f"Town {n}", year=1700 + n)) for n in range(30)),
    ODD,
]


def queries(source: Any, method: str) -> list[tuple[str, ...] | None]:
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda document: source.generate("", document, METHODS[method], 4), DOCUMENTS)
        return [answer.queries for answer in answers]


@pytest.mark.slow
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_the_same_queries_and_a_killed_process_loses_none(by: signal.Signals) -> None:
    source = TemplateGenerator(seed=3)
    with spread(source, MIN_SPREAD, processes=2) as several:
        assert isinstance(several, TemplatePool)
        assert several.parameters == source.parameters
        for method in ("diverse", "paraphrase"):
            assert queries(several, method) == queries(source, method)
        broken = Document(id="broken", title=5, text="A text.")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            several.generate("", broken, METHODS["diverse"], 2)
        children = list(several._pool._processes)
        assert len(children) == 2
        os.kill(children[0], by)  # SIGTERM: as a stop of the whole group, which the process that asks decides about
        assert queries(several, "diverse") == queries(source, "diverse")
    assert not any(map(lives, children))


@pytest.mark.slow
def test_its_processes_end_with_the_one_that_started_them() -> None:
    program = (
        "import time\n"
        "from cdp.base.records import Document\n"
        "from cdp.synthesis.generators.template import TemplateGenerator, spread\n"
        "if __name__ == '__main__':\n"
        "    with spread(TemplateGenerator(), 10**6, processes=2) as pool:\n"
        "        pool.queries(Document('d', 'A text.'), 'diverse', 1)\n"
        "        print(*pool._pool._processes, flush=True)\n"
        "        time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        os.kill(parent.pid, signal.SIGKILL)
    assert children
    until(lambda: not any(map(lives, children)), "the processes to end")


def test_few_documents_one_processor_and_other_generators_stay_in_one_process() -> None:
    source, recorded = TemplateGenerator(), RecordedGenerator()
    for generator, n, processes in ((source, MIN_SPREAD - 1, 8), (source, 10**6, 1), (recorded, 10**6, 8)):
        with spread(generator, n, processes) as chosen:
            assert chosen is generator


def test_what_cannot_be_written_there_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(TemplateGenerator):
        def queries(self, document: Document, method: str, m: int) -> list[str]:
            raise ValueError

    monkeypatch.setattr(module, "_source", Failing())
    assert module._queries(Document("a", "b"), "diverse", 1) is None
