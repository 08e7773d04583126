"""What writes queries. See cdp.synthesis.generators.Generator for what else it may say of itself."""

from cdp.synthesis.generators import Answer, Generator, GeneratorType


class Echo(Generator):
    name = model = "echo"

    def generate(self, prompt, document, method, m, *, sample=0, query=""):
        return Answer(queries=tuple(f"{method.name}: {word}!" for word in document.text.split()[:m]), model="echo")


GENERATOR = GeneratorType("echo", "Echo", "Repeats the words of a document.", lambda config, api_key: Echo())
