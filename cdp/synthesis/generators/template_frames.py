"""The wordings that the template generator puts a document's own words into: twenty for each kind of main question.

``{x}`` is what the question is about, with its article, ``{n}`` the same without one, ``{be}`` is or are, ``{inv}`` a
clause in a question's order and ``{dec}`` in a statement's. The first of each kind is the plainest.
"""

from __future__ import annotations

DEFINITION = (
    "What {be} {x}?", "How would you define {x}?", "{n}: meaning and definition", "Can you explain what {x} {be}?",
    "Give a short description of {x}", "What is meant by {x}?", "In simple words, what {be} {x}?",
    "How would you describe {x}?", "Tell me what {x} {be}", "What exactly {be} {x}?", "definition of {n}",
    "How can {x} be described?", "I would like to know what {x} {be}", "What does {n} mean?",
    "Explain {x}", "What do people mean when they talk about {x}?", "What kind of thing {be} {x}?",
    "{n} explained", "Could you say what {x} {be}?", "What does the term {n} stand for?",
)  # fmt: skip
REASONS = (
    "Why {inv}?", "What is the reason that {dec}?", "How come {dec}?", "For what reason {inv}?",
    "Explain why {dec}", "Can you tell me why {dec}?", "reason why {dec}", "Why is it that {dec}?",
    "Do you know why {dec}?", "I want to understand why {dec}", "Could you explain why {dec}?",
    "What are the reasons that {dec}?", "Tell me why {dec}", "What lies behind the fact that {dec}?",
    "Why exactly {inv}?", "Is there a reason why {dec}?", "What is the explanation of why {dec}?",
    "I wonder why {dec}", "Give the reason why {dec}", "Who can say why {dec}?",
)  # fmt: skip
WAYS = (
    "How {inv}?", "In what way {inv}?", "Can you explain how {dec}?", "Describe how {dec}", "How exactly {inv}?",
    "explanation of how {dec}", "I would like to know how {dec}", "Could you describe how {dec}?",
    "Do you know how {dec}?", "Tell me how {dec}", "Explain how {dec}", "What is the way in which {dec}?",
    "How is it that {dec}?", "I wonder how {dec}", "What is known about how {dec}?", "Show me how {dec}",
    "By what means {inv}?", "Please explain how {dec}", "I want to understand how {dec}", "Who can say how {dec}?",
)  # fmt: skip
ABOUT = (
    "What is known about {x}?", "Tell me about {x}", "What should I know about {x}?", "facts about {x}",
    "Give me information on {x}", "What can be said about {x}?", "{n}: the essentials",
    "What matters about {x}?", "What are the main points about {x}?", "I am looking for details on {x}",
    "What is there to learn about {x}?", "Summarise {x}", "Which facts describe {x}?", "overview of {x}",
    "Could you tell me something about {x}?", "What is important to know about {x}?", "Describe {x}",
    "What is the story of {x}?", "background on {x}", "In short, what about {x}?",
)  # fmt: skip

PHRASES = {
    "what": (
        "What {be} {p}?", "What does {t} have to do with {p}?", "What role {do} {p} have for {t}?",
        "What is known about {p}?",
    ),
    "how": (
        "How {be} {p} related to {t}?", "How important {be} {p}?", "How much depends on {p}?",
        "How would you explain {p}?",
    ),
    "why": (
        "Why {be} {p} important for {t}?", "Why {do} {p} matter?",
        "For what reason {be} {p} mentioned with {t}?",
    ),
    "when": (
        "At what point {do} {p} come into play?", "Where can {p} be found?", "In which situations {be} {p} useful?",
    ),
    "verify": (
        "Is there a link between {p} and {t}?", "{Do} {t} depend on {p}?", "Which facts connect {t} with {p}?",
        "Can one think of {t} without {p}?",
    ),
    "comparison": (
        "{p} or {q}: which matters more?", "What is the difference between {p} and {q}?", "{p} compared with {q}",
        "How do {p} and {q} go together?",
    ),
}  # fmt: skip
"""Questions about a key phrase ``{p}`` of a document on ``{t}``, by format; a comparison sets it beside ``{q}``."""
