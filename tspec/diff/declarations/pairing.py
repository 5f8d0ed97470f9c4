"""Pairs the rules of the two sides: by name, by meaning, by similarity of text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from tspec.logic.implied import with_names
from tspec.resolve.program.rules import Rule

ALIKE = 0.7
"""From here on a rule under another name is the old one with changes."""
MOST = 20_000
"""Pairs of rules without a partner whose texts are compared; more are left as they are."""


@dataclass(frozen=True, slots=True)
class Paired:
    """Pairs of rules, and rules that are on one side only."""

    pairs: tuple[tuple[Rule, Rule], ...]
    removed: tuple[Rule, ...]
    added: tuple[Rule, ...]


def body(rule: Rule) -> Hashable:
    """The body of a rule, with its name and variables normalised."""
    if not rule.subjects:
        return (rule.subjects, rule.across, rule.window, rule.when, rule.expect)
    like = with_names(rule, [f"v{place}" for place in range(len(rule.subjects))])
    return (like.subjects, like.across, like.window, like.when, like.expect)


def same_body(old: Rule, new: Rule) -> bool:
    """True if two bodies are equal, apart from the names of rules and variables."""
    names = [[each.variable for each in rule.subjects] for rule in (old, new)]
    if names[0] == names[1]:
        return (old.subjects, old.across, old.window, old.when, old.expect) == (
            new.subjects, new.across, new.window, new.when, new.expect,
        )  # fmt: skip
    return body(old) == body(new)


def paired(old: Sequence[Rule], new: Sequence[Rule]) -> Paired:
    """Pair rules: of one name first, then moved, then renamed, then renamed and changed."""
    found: list[tuple[Rule, Rule]] = []
    left, right = list(old), list(new)
    for key in (
        lambda rule: rule.qualified,
        lambda rule: (rule.name, body(rule)),
        lambda rule: (rule.module, body(rule), rule.responses),
        lambda rule: (body(rule), rule.responses),
        body,
        lambda rule: rule.name,
    ):
        pairs = _by_key(left, right, key)
        found += pairs
        left, right = _without(left, right, pairs)
    pairs = _by_likeness(left, right)
    found += pairs
    left, right = _without(left, right, pairs)
    return Paired(tuple(found), tuple(left), tuple(right))


def _without(
    left: list[Rule], right: list[Rule], pairs: Iterable[tuple[Rule, Rule]]
) -> tuple[list[Rule], list[Rule]]:
    gone = {id(rule) for pair in pairs for rule in pair}
    return (
        [rule for rule in left if id(rule) not in gone],
        [rule for rule in right if id(rule) not in gone],
    )


def _by_key(left: list[Rule], right: list[Rule], key: object) -> list[tuple[Rule, Rule]]:
    """Pairs of rules with one key, if each side has only one."""
    assert callable(key)
    sides: list[dict[Hashable, list[Rule]]] = []
    for rules in (left, right):
        by: dict[Hashable, list[Rule]] = {}
        for rule in rules:
            by.setdefault(key(rule), []).append(rule)
        sides.append(by)
    before, after = sides
    return [
        (rules[0], after[each][0])
        for each, rules in before.items()
        if len(rules) == 1 and len(after.get(each, ())) == 1
    ]


def _by_likeness(left: list[Rule], right: list[Rule]) -> list[tuple[Rule, Rule]]:
    """The most alike first; each rule once."""
    if len(left) * len(right) > MOST:
        return []
    texts = {id(rule): _words(rule) for rule in (*left, *right)}
    likeness = []
    for before, one in enumerate(left):
        matcher = SequenceMatcher(b=texts[id(one)], autojunk=False)
        for after, other in enumerate(right):
            matcher.set_seq1(texts[id(other)])
            if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE:
                ratio = matcher.ratio()
                if ratio >= ALIKE:
                    likeness.append((-ratio, before, after))
    found: list[tuple[Rule, Rule]] = []
    taken: set[tuple[str, int]] = set()
    for _, before, after in sorted(likeness):
        if ("old", before) not in taken and ("new", after) not in taken:
            taken |= {("old", before), ("new", after)}
            found.append((left[before], right[after]))
    return found


def _words(rule: Rule) -> list[str]:
    """The rule's text without its name, word by word."""
    return rule.source.slice(rule.spans.whole).replace(rule.name, "", 1).split()
