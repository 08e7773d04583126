"""Commands declared as functions: parser, help, completion, ``--set``, ``-`` as file, the project's, errors of typing.

    @command("queries estimate", project=("corpus",))
    def estimate(run: Run, config: SynthesisConfig, *, latency: Annotated[float, "seconds per request"] = 1.0) -> int:
        '''tokens, price and time of writing queries for a corpus'''

A positional parameter is a word, a keyword-only one an option; a bool is a flag, a list may be repeated, a Literal has
choices; the first text of ``Annotated`` is the help. A parameter of a settings model (``cdp.base.settings.Config``)
stands for its settings: each is an option, advanced ones are left out of the help, and ``--set FIELD=VALUE`` gives any.
"""

from __future__ import annotations

import argparse
import inspect
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from cdp.base.config import PromptTuningConfig, SynthesisConfig
from cdp.base.errors import CdpError, ConfigError, nearest, offer, some, visible
from cdp.base.registry import registry
from cdp.base.settings import Config
from cdp.base.workspace import Workspace, disk_fault, open_workspace, private_files
from cdp.cli.answers import STANDARD, Detached, Handler, Run, note
from cdp.cli.overview import BAD_INPUT, DONE, INTERRUPTED, MODULES, SECTIONS
from cdp.services.commands import PROGRAM


@dataclass(frozen=True)
class Reads:
    """Mark of a parameter that names a file to read: ``-`` is standard input, taken as a file with this suffix."""

    suffix: str = ""


Id = Annotated[str, "its id, name or a unique prefix of its id"]
Name = Annotated[str, "a name for it"]
Set = Annotated[dict[str, str], "any further setting; repeatable", "FIELD=VALUE"]
AllowIncomplete = Annotated[bool, "train although a query set is incomplete: its job failed, was stopped or runs"]
AllowLeakage = Annotated[
    bool, "train on queries that a benchmark judges; the training and its results stay marked as leaked"
]


@dataclass(frozen=True)
class Argument:
    """One word or option of a command, as argparse takes it."""

    name: str
    help: str
    kind: type = str
    word: bool = False
    many: bool = False
    required: bool = False
    choices: Sequence[str] = ()
    metavar: str = ""
    hidden: bool = False
    setting: bool = False
    reads: Reads | None = None

    @property
    def flag(self) -> str:
        """The text to type: ``--per-doc``, ``-k``, or the name of a word."""
        name = self.name.rstrip("_")
        if self.word:
            return name
        return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        # Nothing has a default here: only what was typed is in the answer.
        details: dict[str, Any] = {"default": argparse.SUPPRESS, "help": self.help.replace("%", "%%")}
        if self.hidden:
            details["help"] = argparse.SUPPRESS

        if self.kind is bool:
            details["action"] = argparse.BooleanOptionalAction if self.setting else "store_true"
        else:
            if self.choices:
                details["choices"] = self.choices
            if self.metavar:
                details["metavar"] = self.metavar
            if self.kind in (int, float) and not self.setting:
                details["type"] = self.kind

            if self.many:
                details |= {"nargs": "+"} if self.word else {"action": "append"}
            elif self.word and not self.required:
                details["nargs"] = "?"

        if not self.word:
            details |= {"dest": self.name, "required": self.required}

        parser.add_argument(self.flag, **details)


@dataclass(frozen=True)
class Command:
    """A function that is a command. ``words`` name it, ``places`` are settings given as words, ``project`` those
    that a project fills in (None: the command does not know projects), unless ``instead`` is given; ``job`` is whether
    it starts one. ``narrow`` returns the command that the next word makes of it, with options of its own."""

    words: str
    call: Handler
    places: tuple[str, ...] = ()
    project: tuple[str, ...] | None = None
    instead: str = ""
    job: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    narrow: Callable[[str], Command] | None = None

    @property
    def help(self) -> str:
        return " ".join(inspect.cleandoc(self.call.__doc__ or "").split()).removesuffix(".")

    @property
    def program(self) -> str:
        return f"{PROGRAM} {self.words}"

    @cached_property
    def parameters(self) -> dict[str, tuple[inspect.Parameter, Any]]:
        """The function's parameters after ``run``, each with its type."""
        hints = get_type_hints(self.call, include_extras=True)
        listed = list(inspect.signature(self.call).parameters.values())[1:]
        return {parameter.name: (parameter, hints[parameter.name]) for parameter in listed}

    @cached_property
    def configs(self) -> dict[str, type[Config]]:
        """The parameters that are settings models."""
        return {name: hint for name, (_, hint) in self.parameters.items() if _is_config(hint)}

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """Every word and option by its name."""
        listed: dict[str, Argument] = {}
        for parameter, hint in self.parameters.values():
            if _is_config(hint):
                made = [*self._of_settings(hint)]
            else:
                word = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
                needed = parameter.default is inspect.Parameter.empty and hint != Set
                filled = parameter.name in (self.project or ())
                made = [_of_type(parameter.name, hint, word, needed and not filled)]

            for argument in made:
                listed.setdefault(argument.name, argument)

        common = []

        if self.project is not None:
            common.append(
                Argument("project", "the project, by id or name, or all; the one of projects use if left out")
            )

        if self.job:
            common.append(Argument("wait", "follow the job to its end; Ctrl-C leaves it running", bool))
        if self.configs:
            common.append(_of_type("set", Set))

        common.append(Argument("json", "answer in JSON", bool))
        return listed | {argument.name: argument for argument in common if argument.name not in listed}

    def _of_settings(self, config: type[Config]) -> Iterator[Argument]:
        for name, setting in config.settings().items():
            argument = Argument(
                name,
                setting.help,
                setting.kind,
                word=name in self.places,
                required=setting.required,
                choices=() if setting.entries else setting.choices,
                hidden=setting.advanced,
                setting=True,
            )
            if name in (self.project or ()):
                text = f"{setting.help.rstrip('.')}; the project's only one if left out."
                argument = replace(argument, help=text, required=False)
            if setting.holds == "path" and name in ("path", "file"):
                argument = replace(argument, reads=Reads())

            yield argument

    def parser(self, sets: Collection[str] = ()) -> Parser:
        """Return the parser; ``sets`` are settings that ``--set`` gives, so that none of them is required."""
        parser = Parser(prog=self.program, description=f"{self.help}.", allow_abbrev=False)
        for argument in self.arguments.values():
            if argument.name in sets:
                argument = replace(argument, required=False)
            argument.add_to(parser)

        return parser

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return what was typed, by name. UsageError for what the command does not take."""
        sets = {pair.partition("=")[0].strip() for flag, pair in pairwise(words) if flag == "--set"}
        parsed, unknown = self.parser(sets).parse_known_args(words)
        if not unknown:
            return vars(parsed)

        message = f"{unknown[0]!r} is not known here."
        near = nearest(unknown[0].partition("=")[0], [a.flag for a in self.arguments.values() if not a.word])
        if near:
            message += f" Did you mean {near}?"
        raise UsageError(message, self.program)

    def bind(self, run: Run, given: dict[str, Any]) -> dict[str, Any]:
        """Return the function's arguments: settings checked, ``-`` read, what is left out filled from the project."""
        sets = _pairs(given.get("set", []))
        for name in self.arguments.keys() & sets.keys() & given.keys():
            if str(given[name]) != sets[name]:
                raise ConfigError(f"{name} is {given[name]}, and --set {name}={sets[name]} says otherwise.",
                                  hint="Say it once.")  # fmt: skip

        if self.project is not None:
            _fill(run, self, given, sets)

        for argument in self.arguments.values():
            if argument.reads is not None and given.get(argument.name) == STANDARD:
                given[argument.name] = run.standard_input(argument.reads.suffix)

        bound = {name: given.get(name, parameter.default) for name, (parameter, _) in self.parameters.items()}
        if "set" in bound:
            bound["set"] = sets

        typed, last = given | sets, [*self.configs][-1:]
        for name, config in self.configs.items():
            # A setting of two models goes to the first. One of no model goes to the last, which names the nearest.
            known = {*config.settings(), *config.members()}
            mine = [key for key in typed if key.partition(".")[0] in known or (name in last and key in sets)]
            own = {key: typed.pop(key) for key in mine}

            try:
                made = bound[name] = config.from_dict({**self.defaults, **own})
            except ConfigError as error:
                raise UsageError(str(error), self.program) from None

            if isinstance(made, SynthesisConfig | PromptTuningConfig):
                names = [key.rpartition(".")[2] for key in own]
                check_generator(made.endpoint.generator, getattr(made, "method", ""), names)

        return bound


COMMANDS: dict[str, Command] = {}


def command(words: str, **details: Any) -> Callable[[Handler], Handler]:
    """Declare a function as the command of these words; ``details`` are fields of ``Command``."""

    def declared(call: Handler) -> Handler:
        COMMANDS[words] = Command(words, call, **details)
        return call

    return declared


def all_commands() -> dict[str, Command]:
    """Return every command by its words, in the order of the help."""
    listed: dict[str, Command] = {}
    for first in first_words():
        listed |= {words: made for words, made in _module(first).items() if words.partition(" ")[0] == first}

    return listed


def first_words() -> dict[str, str]:
    """Return the first words of all commands, each with what it is about."""
    listed: dict[str, str] = {}
    for words in SECTIONS.values():
        listed |= words

    return listed


def execute(words: list[str]) -> int:
    """Run the command that these words are and return the exit code."""
    try:
        found = find(words)
        if isinstance(found, int):
            return found

        made, rest = found
        given = made.read(rest)
        private_files()

        run = Run(open_workspace(Workspace.default()), given)
        with run.ends:
            return made.call(run, **made.bind(run, given))
    except CdpError as error:
        note(f"cdp: {_in_one_line(str(error))}")
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except OSError as error:
        if not (fault := disk_fault(error)):
            raise
        note(f"cdp: {fault} ({error.filename or error.strerror}).")
        return BAD_INPUT
    except Detached as left:
        note(f"\n{left}")
        return INTERRUPTED
    except KeyboardInterrupt:
        note("cdp: interrupted")
        return INTERRUPTED


class UsageError(ConfigError):
    """A command line that cannot be understood, with the command whose help says how to write it."""

    def __init__(self, message: str, program: str = PROGRAM) -> None:
        sentence = " ".join(message.split())
        if not sentence.endswith((".", "?")):
            sentence += "."
        super().__init__(f"{sentence} See: {program} --help")


class Parser(argparse.ArgumentParser):
    """argparse that raises UsageError and offers the nearest word."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.prog)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        # argparse has no public place for the text of this refusal, and checks the default of a word left out too.
        if action.choices is not None and value is not argparse.SUPPRESS and value not in action.choices:
            offered = offer(str(value), list(map(str, action.choices)))
            raise argparse.ArgumentError(action, f"{value!r} is not known. {offered}")


def find(words: list[str]) -> tuple[Command, list[str]] | int:
    """Return the command and the words after its own; the exit code where the help of a group was shown instead."""
    first, rest = words[0], words[1:]
    if first.startswith("-"):
        raise UsageError(f"{first} stands before the command's words; options come behind them.")
    if first not in first_words():
        raise UsageError(f"{first!r} is not known. {offer(first, list(first_words()))}")

    listed = _module(first)
    if first in listed:
        return listed[first], rest

    group = {name.partition(" ")[2]: made for name, made in listed.items() if name.startswith(f"{first} ")}
    program = f"{PROGRAM} {first}"

    if not rest or rest[0] in ("-h", "--help"):
        width = max(map(len, group))
        print(f"usage: {program} COMMAND …\n\n{first_words()[first]}\n")
        for name, made in group.items():
            print(f"  {name:<{width}}  {made.help}")
        return DONE if rest else BAD_INPUT

    if rest[0].startswith("-"):
        raise UsageError(f"{rest[0]} stands before the command's words; options come behind them.", program)
    if rest[0] not in group:
        raise UsageError(f"{rest[0]!r} is not known. {offer(rest[0], list(group))}", program)

    made, rest = group[rest[0]], rest[1:]
    if made.narrow is not None and rest and not rest[0].startswith("-"):
        return made.narrow(rest[0]), rest[1:]

    return made, rest


def _module(first: str) -> dict[str, Command]:
    """Load the module that declares the commands under a first word, and return all commands loaded so far."""
    import_module(f"cdp.cli.{MODULES.get(first, first)}")
    return COMMANDS


def _is_config(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Config)


def _of_type(name: str, hint: Any, word: bool = False, required: bool = False) -> Argument:
    """Return the argument that a parameter of this type is."""
    kind: Any = hint
    marks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        kind, marks = hint.__origin__, hint.__metadata__
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))

    choices: Sequence[str] = ()
    if get_origin(kind) is Literal:
        choices = get_args(kind)

    texts: list[str] = []
    reads = None
    for mark in marks:
        if isinstance(mark, str):
            texts.append(mark)
        elif isinstance(mark, Reads):
            reads = mark
        elif isinstance(mark, Sequence):
            choices = mark

    help_text, metavar = [*texts, "", ""][:2]
    many = get_origin(kind) in (list, dict)
    if many:
        kind = get_args(kind)[0]
    if kind not in (int, float, bool):
        kind = str

    return Argument(name, help_text, kind, word, many, required, choices, metavar, reads=reads)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Return the ``--set field=value`` options. ConfigError for one without ``=``."""
    values: dict[str, str] = {}
    for pair in texts:
        name, separator, value = pair.partition("=")
        if not separator:
            raise ConfigError(f"--set {pair} has no value.", hint="Write --set field=value.")
        values[name.strip()] = value
    return values


# Settings that a project fills in, and which of its members they are.
FILLED = {"corpus": "corpora", "query_set": "query_sets", "benchmark": "benchmarks"}


def _fill(run: Run, made: Command, given: dict[str, Any], sets: Mapping[str, str]) -> None:
    """Set ``run.scope`` to the project's members, and fill in what was left out where the project has one such thing.

    ConfigError where it has none or several.
    """
    from cdp.services import projects

    named, chosen = run.project, None
    if not named:
        chosen = projects.default(run.workspace)
    elif named != projects.ALL:
        chosen = projects.resolve(run.workspace, named)

    run.scope = projects.members(run.workspace, chosen.id if chosen else projects.ALL)
    for name in made.project or ():
        if given.get(name) or name in sets or given.get(made.instead) or made.instead in sets:
            continue
        if chosen is None:  # as argparse words it
            flag = made.arguments[name].flag
            problem = f"the following arguments are required: {flag}, or --project NAME that has one"
            raise UsageError(problem, made.program)

        things = getattr(run.scope, FILLED[name])
        if len(things) != 1:
            there = f"has {len(things)}: {some(things, 5)}" if things else "has none"
            kind = name.replace("_", " ")
            raise ConfigError(f"No {kind} is named, and the project {chosen.name} {there}.", hint="Name one.")

        given[name] = str(things[0])

    if chosen and not named and not made.project:
        note(f"project {chosen.name}; everything: --project all")


def check_generator(generator: str, method: str, typed: Iterable[str]) -> None:
    """ConfigError for a setting that was typed and that the chosen generator or method does not read."""
    kinds, asked = registry("generator"), registry("method").get(method)
    if asked is not None:
        for name in typed:
            if name in asked.fixed:
                hint = f"Leave {name} out."
                raise ConfigError(f"{name} has no effect: the method {method} sets its own.", hint=hint)
        if asked.generator in kinds:
            generator = asked.generator

    chosen = kinds.get(generator)
    if chosen is None or chosen.reads is None:
        return

    every = {name for kind in kinds.values() for name in kind.reads or ()}
    for name in typed:
        if name in every and name not in chosen.reads:
            known = ", ".join(sorted(chosen.reads)) or "none of an LLM's settings"
            raise ConfigError(f"The generator {chosen.name} does not read {name}; it reads: {known}.")


def _in_one_line(text: str) -> str:
    """Return a message as one line: names in it may hold line breaks, terminal escapes, or bytes that are no text."""
    return visible(" ".join(text.split()))


def completion_script(shell: str) -> str:
    """Return a script for bash, or for zsh by its emulation of bash, that completes words, options and choices."""
    seconds: dict[str, list[str]] = defaultdict(list)
    choices, options = [], []
    for words, made in all_commands().items():
        first, _, second = words.partition(" ")
        if second:
            seconds[first].append(second)

        flags = []
        for argument in made.arguments.values():
            if argument.hidden or argument.word:
                continue
            flags.append(argument.flag)
            if argument.choices:
                choices.append(_case(f'"{words} "*"{argument.flag}"', argument.choices))
        options.append(_case(f'"{words}"*', flags, dashed=True))

    groups = [_case(f'"{first}"', second) for first, second in seconds.items()]
    load = "autoload -Uz bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    cases = "\n".join([_case('""', list(first_words())), *groups, *choices, *options])

    return f"""{load}_cdp() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" list=""
    case "${{COMP_WORDS[*]:1:COMP_CWORD-1}}" in
{cases}
    esac
    COMPREPLY=($(compgen -W "$list" -- "$cur"))
}}
complete -o default -F _cdp cdp
"""


def _case(pattern: str, words: Sequence[str], dashed: bool = False) -> str:
    asked = '[[ "$cur" == -* ]] && ' if dashed else ""
    return f'        {pattern}) {asked}list="{" ".join(words)}" ;;'
