"""Operators: the types of their operands, and the optional values that they guard."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.paths import is_bare
from tspec.resolve.expressions.presence import facts
from tspec.resolve.names.type_names import comparable, words_of
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import (
    CallOf,
    Entity,
    MapOf,
    SetOf,
    Type,
    is_number,
    item_of,
    plain,
)
from tspec.source import Span
from tspec.syntax import nodes

Equality = Literal["==", "!="]


def condition(node: nodes.Expr, env: Environment) -> rules.Expr:
    """Type an expression that must be a bool. Raises Refused."""
    found = env.lower(node)
    of = env.there(found)
    if of == types.SCALAR:
        # Only the recording knows that the attribute is a bool.
        truth = rules.Constant(types.BOOL, found.span, True)
        return rules.Compare(types.BOOL, found.span, "==", found, truth)
    if of != types.BOOL:
        hint = None
        if of == types.TENSOR:
            hint = "compare a feature of it, such as `norm(...)` or `finite(...)`"
        env.refuse("TS0131", f"a condition is true or false, and this is {named(of)}", node, hint)
    return found


def lower_logic(node: nodes.Expr, env: Environment) -> rules.Expr:
    """`not`, `and`, `or`, `implies`. The left operand guards optional values in the right one."""
    match node:
        case nodes.Not(value=value):
            return rules.Not(types.BOOL, node.span, condition(value, env))
        case nodes.And(operands=operands):
            return rules.And(types.BOOL, node.span, _guarded(operands, env, True))
        case nodes.Or(operands=operands):
            return rules.Or(types.BOOL, node.span, _guarded(operands, env, False))
        case nodes.Implies(left=left, right=right):
            first, second = _guarded((left, right), env, True)
            return rules.Implies(types.BOOL, node.span, first, second)
    raise AssertionError(node)


def _guarded(
    given: tuple[nodes.Expr, ...], env: Environment, truth: bool
) -> tuple[rules.Expr, ...]:
    found = []
    failed = False
    for node in given:
        try:
            value = condition(node, env)
        except Refused:
            failed = True
            continue
        found.append(value)
        env = env.knowing(facts(value, truth))
    if failed:
        raise Refused
    return tuple(found)


# --- numbers ------------------------------------------------------------------------------------


def lower_arithmetic(node: nodes.Expr, env: Environment) -> rules.Expr:
    """`a + b`, `-a`: an int if all operands are ints and the operator is not `/`."""
    if isinstance(node, nodes.Negative):
        value = env.lower(node.value)
        of = _number(value, node.value, env, "-")
        if isinstance(value, rules.Constant) and not isinstance(value.value, str | bool):
            return rules.Constant(of, node.span, -value.value)
        return rules.Negate(of, node.span, value)
    assert isinstance(node, nodes.Arithmetic)
    left, right = env.lower_all((node.left, node.right))
    kinds = (
        _number(left, node.left, env, node.operator),
        _number(right, node.right, env, node.operator),
    )
    whole = kinds == (types.INT, types.INT) and node.operator != "/"
    return rules.Arithmetic(
        types.INT if whole else types.FLOAT, node.span, node.operator, left, right
    )


def _number(value: rules.Expr, node: nodes.Expr, env: Environment, operator: str) -> Type:
    of = env.there(value)
    if not is_number(of):
        hint = None
        if of == types.TENSOR:
            hint = "a tensor is read through a feature, such as `norm(...)` or `max(...)`"
        elif item_of(of) is not None:
            hint = "fold the list to one number first: `sum(...)`, `mean(...)`, `max(...)`"
        env.refuse("TS0130", f"`{operator}` takes numbers, and this is {named(of)}", node, hint)
    return types.FLOAT if of == types.SCALAR else of


# --- comparisons --------------------------------------------------------------------------------


def lower_comparison(node: nodes.Comparison, env: Environment) -> rules.Expr:
    """`a == b`, `a in b`, `a is b`, and the links of `0 <= a < b`."""
    found = []
    failed = False
    for left, operator, right in node.links:
        # Parentheses around a side belong to the comparison, and not to the side.
        span = node.span if len(node.operators) == 1 else left.span.to(right.span)
        try:
            found.append(_link(left, operator, right, span, env))
        except Refused:
            failed = True
    if failed:
        raise Refused
    return found[0] if len(found) == 1 else rules.And(types.BOOL, node.span, tuple(found))


def _link(
    left: nodes.Expr, operator: str, right: nodes.Expr, span: Span, env: Environment
) -> rules.Expr:
    if operator in ("in", "not in"):
        found: rules.Expr = _member(left, right, span, env)
        return rules.Not(types.BOOL, span, found) if operator == "not in" else found
    first, second = _both(left, right, env)
    if operator in ("is", "is not"):
        found = _same_object(first, second, span, env)
        return rules.Not(types.BOOL, span, found) if operator == "is not" else found
    if operator in ("==", "!="):
        return _equal(operator, first, second, span, env)  # type: ignore[arg-type]
    for value, given in ((first, left), (second, right)):
        _number(value, given, env, operator)
    for each in get_args(Literal["<", "<=", ">", ">="]):
        if each == operator:
            return rules.Compare(types.BOOL, span, each, first, second)
    raise AssertionError(operator)


def _both(left: nodes.Expr, right: nodes.Expr, env: Environment) -> tuple[rules.Expr, rules.Expr]:
    """Type both sides; a bare word or text on one side is read as a value of the other's type."""
    if is_bare(left, env) or isinstance(left, nodes.String | nodes.List):
        second = env.lower(right)
        return env.lower(left, second.type), second
    try:
        first = env.lower(left)
    except Refused:
        # The right side may have errors of its own. Checks that need the left side's type are left
        # out.
        if not is_bare(right, env):
            env.lower(right)
        raise
    return first, env.lower(right, first.type)


def _equal(
    operator: Equality, left: rules.Expr, right: rules.Expr, span: Span, env: Environment
) -> rules.Expr:
    kinds = (env.there(left), env.there(right))
    if types.CLASS in kinds and any(isinstance(each, rules.Constant) for each in (left, right)):
        other = right if isinstance(left, rules.Constant) else left
        owner = other.base if isinstance(other, rules.Field) else other
        text = env.scope.source.slice(owner.span)
        hint = f"write `isinstance({text}, ...)`, which is true of subclasses too"
        env.refuse("TS0133", "classes are not compared with `==`", span, hint)
    if not comparable(*kinds):
        message = f"{named(kinds[0])} is never equal to {named(kinds[1])}"
        near = _quoted_word(kinds, left, right)
        constant = left if isinstance(left, rules.Constant) else right
        env.refuse("TS0133", message, constant.span if near else span, near)
    if any(
        isinstance(each, rules.ListDisplay) and isinstance(each.type, SetOf)
        for each in (left, right)
    ):
        both = tuple(
            rules.Member(types.BOOL, span, *pair) for pair in ((left, right), (right, left))
        )
        found = rules.And(types.BOOL, span, both)
        return found if operator == "==" else rules.Not(types.BOOL, span, found)
    return replace(equality(operator, left, right), span=span)


def _quoted_word(kinds: tuple[Type, Type], left: rules.Expr, right: rules.Expr) -> str | None:
    """The hint for a quoted text where a bare word belongs."""
    words = words_of(kinds[0]) | words_of(kinds[1])
    constant = left if isinstance(left, rules.Constant) else right
    if types.STRING not in kinds or not isinstance(constant, rules.Constant):
        return None
    if constant.value in words:
        return f"write `{constant.value}` without quotes"
    return did_you_mean(str(constant.value), words)


def equality(operator: Equality, left: rules.Expr, right: rules.Expr) -> rules.Compare:
    """`==` of two values of comparable types; tensors are equal if their digests are."""
    span = left.span.to(right.span)
    return rules.Compare(types.BOOL, span, operator, digest_of(left), digest_of(right))


def digest_of(value: rules.Expr) -> rules.Expr:
    """A tensor's digest if the value is a tensor, or else the value itself."""
    if plain(value.type) != types.TENSOR:
        return value
    if isinstance(value, rules.Old | rules.Previous | rules.First):
        return replace(value, type=types.INT, value=digest_of(value.value))
    return rules.Feature(types.INT, value.span, "digest", value)


def _member(left: nodes.Expr, right: nodes.Expr, span: Span, env: Environment) -> rules.Expr:
    collection = _collection(left, right, env)
    of = env.there(collection)
    if of == types.STRING:
        want: Type | None = types.STRING
    elif isinstance(of, MapOf):
        want = of.key
    else:
        want = item_of(of)
    if want is None:
        hint = "after `in` stands a list, a set, a map or a collection"
        if isinstance(right, nodes.Quantity | nodes.Integer | nodes.Float):
            hint = f"write `== {env.scope.source.slice(right.span)}` or `in [...]`"
        env.refuse("TS0136", f"{named(of)} holds nothing that could be in it", right, hint)
    item = env.lower(left, want)
    kind = env.there(item)
    whole = of if isinstance(kind, MapOf) else want
    inner = kind if isinstance(kind, MapOf) else item_of(kind)
    many = inner is not None and comparable(inner, whole)
    if not (comparable(kind, want) or many):
        env.refuse("TS0133", f"{named(kind)} is never in {named(of)}", span)
    if inner is not None and not many:  # a shape in a list of shapes is one element of it
        item = rules.ListDisplay(types.ListOf(plain(item.type)), item.span, (item,))
    return rules.Member(types.BOOL, span, item, collection)


def _collection(left: nodes.Expr, right: nodes.Expr, env: Environment) -> rules.Expr:
    """The right side of `in`. Bare words in a list are of the type of the left side."""
    if not isinstance(right, nodes.List | nodes.Set) or is_bare(left, env):
        return env.lower(right)
    item = env.lower(left)
    inner = item_of(item.type)
    return env.lower(right, types.ListOf(inner or plain(item.type)))


def _same_object(left: rules.Expr, right: rules.Expr, span: Span, env: Environment) -> rules.Expr:
    objects = (Entity, CallOf)
    for value in (left, right):
        of = env.there(value)
        if not isinstance(of, objects) and of != types.TENSOR:
            hint = "write `==`"
            env.refuse(
                "TS0130", f"`is` compares objects, and this is {named(of)}", value.span, hint
            )
    if plain(left.type) != plain(right.type):
        message = f"{named(plain(left.type))} is never {named(plain(right.type))}"
        env.refuse("TS0133", message, span)
    return rules.SameObject(types.BOOL, span, left, right)


def named(of: Type) -> str:
    """A type with its article, as messages say it."""
    if isinstance(of, types.Enum):
        return f"one of `{of}`"
    return with_article(of)
