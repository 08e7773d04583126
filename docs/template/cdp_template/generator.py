"""What writes queries: anything with these attributes and methods, see cdp.synthesis.generators.Generator."""

from cdp.synthesis.generators import Answer, GeneratorType


class Echo:
    name = model = "echo"
    concurrency = 1
    is_llm = False

    def __init__(self):
        self.parameters = {}  # all that an answer depends on besides prompt and model

    def prepare(self): ...
    def cancel(self): ...

    def generate(self, prompt, document, method, m, *, sample=0, query=""):
        return Answer(queries=tuple(f"{method.name}: {word}!" for word in document.text.split()[:m]), model="echo")


GENERATOR = GeneratorType("echo", "Echo", "Repeats the words of a document.", lambda config, api_key: Echo())
