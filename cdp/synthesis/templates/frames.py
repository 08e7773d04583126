"""The wordings that the template generator puts a document's own words into: about twenty for each kind of question.

``{x}`` is what the question is about, with its article, ``{n}`` the same without one, ``{be}`` is or are, ``{inv}`` a
clause in a question's order, ``{dec}`` in a statement's, ``{s}`` a whole sentence, ``{k}`` a kind of thing. The first
of each kind is the plainest.
"""

from __future__ import annotations

DEFINITION = (
    "What {be} {x}?", "How would you define {x}?", "{n}: meaning and definition", "Can you explain what {x} {be}?",
    "Give a short description of {x}", "What is meant by {x}?", "In simple words, what {be} {x}?",
    "How would you describe {x}?", "Tell me what {x} {be}", "What exactly {be} {x}?", "definition of {n}",
    "How can {x} be described?", "I would like to know what {x} {be}", "{n} in plain words",
    "Explain {x}", "What do people mean when they talk about {x}?", "What kind of thing {be} {x}?",
    "{n} explained", "Could you say what {x} {be}?", "Do you know what {x} {be}?",
)  # fmt: skip
PERSON = (
    "Who {be} {x}?", "{x}: biography", "Can you tell me who {x} {be}?", "What {be} {x} known for?",
    "Tell me who {x} {be}",
    "Who exactly {be} {x}?", "Give a short biography of {x}", "life and work of {x}",
    "I would like to know who {x} {be}",
    "How would you describe {x}?", "profile of {x}", "Who is meant by {x}?", "Tell me about the life of {x}",
    "What {be} the profession of {x}?", "Who {be} {x} and what {be} {x} known for?", "Who {be} {x}, in one sentence?",
    "Do you know who {x} {be}?", "Could you say who {x} {be}?", "What is {x} remembered for?", "short biography of {x}",
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
CLAIM = (
    "{dec}", "Is it true that {dec}?", "evidence that {dec}", "Can you confirm that {dec}?", "I have read that {dec}",
    "Where does it say that {dec}?", "What evidence is there that {dec}?",
    "Does anything support the claim that {dec}?",
    "source for the claim that {dec}", "How do we know that {dec}?", "Is it right to say that {dec}?",
    "the claim that {dec}", "Is there evidence that {dec}?", "Tell me whether {dec}", "Would you say that {dec}?",
    "I want to check that {dec}", "What can be said for the claim that {dec}?", "Somebody told me that {dec}",
    "Is it a fact that {dec}?", "proof that {dec}",
)  # fmt: skip
SENTENCE = (
    "{s}", "Is this true: {s}?", "evidence for: {s}", "Can you confirm this: {s}?", "I have read this: {s}",
    "Where does it say this: {s}?", "What supports this: {s}?", "source for this claim: {s}", "fact check: {s}",
    "How do we know this: {s}?", "Is it right to say this: {s}?", "the following claim: {s}", "true or false: {s}",
    "Tell me whether this holds: {s}", "Would you agree with this: {s}?", "I want to check this: {s}",
    "What is behind this: {s}?", "Somebody told me this: {s}", "Is this a fact: {s}?", "proof of this: {s}",
)  # fmt: skip
ABOUT = (
    "What is known about {x}?", "Tell me about {x}", "What should I know about {x}?", "facts about {x}",
    "Give me information on {x}", "What can be said about {x}?", "{n}: the essentials",
    "What matters about {x}?", "What are the main points about {x}?", "I am looking for details on {x}",
    "What is there to learn about {x}?", "Summarise what is known about {x}", "Which facts describe {x}?",
    "overview of {x}", "Could you tell me something about {x}?", "What is important to know about {x}?", "Describe {x}",
    "What is the story of {x}?", "background on {x}", "In short, what about {x}?",
)  # fmt: skip

# Questions about a key phrase ``{p}`` of a document on ``{t}``, by format; a comparison sets it beside ``{q}``. They
# stand in where a document holds no clause for a format, after all that is built from its clauses.
PHRASES = {
    "what": ("What is known about {p} and {t}?", "What is written about {p}?"),
    "how": ("How {be} {p} connected with {t}?", "How would you explain {p}?"),
    "verify": ("Is there a link between {p} and {t}?", "Which facts connect {t} with {p}?"),
    "comparison": ("{p} compared with {q}", "How do {p} and {q} go together?"),
}
