"""An expression in the words of the language, as findings and comments show it."""

from __future__ import annotations

from tspec.resolve import rules as r
from tspec.resolve.types import STRING


def spell(expr: r.Expr) -> str:
    """The text of an expression; every operator inside another one stands in parentheses."""
    return _spell(expr, top=True)


def _spell(expr: r.Expr, top: bool = False) -> str:
    match expr:
        case r.Compare(op=op, left=left, right=right) | r.Arithmetic(op=op, left=left, right=right):
            return _nested(f"{_spell(left)} {op} {_spell(right)}", top)
        case r.Member(item=item, collection=collection):
            return _nested(f"{_spell(item)} in {_spell(collection)}", top)
        case r.SameObject(left=left, right=right):
            return _nested(f"{_spell(left)} is {_spell(right)}", top)
        case r.And(items=items):
            return _nested(" and ".join(map(_spell, items)), top)
        case r.Or(items=items):
            return _nested(" or ".join(map(_spell, items)), top)
        case r.Implies(left=left, right=right):
            return _nested(f"{_spell(left)} implies {_spell(right)}", top)
        case r.Not(value=value):
            return _nested(f"not {_spell(value)}", top)
        case r.Negate(value=value):
            return f"-{_spell(value)}"
        case _:
            return _term(expr)


def _nested(text: str, top: bool) -> str:
    return text if top else f"({text})"


def _term(expr: r.Expr) -> str:
    match expr:
        case r.Constant(value=value):
            return f'"{value}"' if isinstance(value, str) and expr.type == STRING else _plain(value)
        case r.ListDisplay(items=items):
            return "[" + ", ".join(spell(item) for item in items) + "]"
        case r.Ambient(name=name) | r.Variable(name=name):
            return name
        case r.WindowCall():
            return str(getattr(expr.type, "event", "call"))
        case r.LastCall(event=event):
            return event.events[0]
        case r.Subjects(kind=kind, filters=filters):
            return f"{kind}s{_filters(filters)}"
        case r.Restrict(collection=collection, filters=filters):
            return f"{_spell(collection)}{_filters(filters)}"
        case r.Calls(event=event):
            return f"calls({spell_event(event)})"
        case r.Field(base=base, name=name):
            return f"{_spell(base)}.{name}"
        case r.Index(base=base, index=index):
            return f"{_spell(base)}[{spell(index)}]"
        case _:
            return _call(expr)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _call(expr: r.Expr) -> str:
    match expr:
        case r.Feature(name=name, tensor=tensor, per=per, dim=dim):
            if name in ("shape", "dtype", "device", "memory_format", "requires_grad", "name"):
                return f"{_spell(tensor)}.{name}"
            option = f", per: {per}" if per is not None else "" if dim is None else f", dim: {dim}"
            return f"{name}({spell(tensor)}{option})"
        case r.Cast(tensor=tensor, dtype=dtype):
            return f"cast({spell(tensor)}, {spell(dtype)})"
        case r.Change(tensor=tensor):
            return f"change({spell(tensor)})"
        case r.Fold(name=name, value=value, over=over):
            span = "" if over is None else f", over: {over.count} {over.unit}s"
            return f"{name}({spell(value)}{span})"
        case r.Function(name=name, arguments=arguments):
            return f"{name}({', '.join(map(spell, arguments))})"
        case r.Old(value=value) | r.Previous(value=value) | r.First(value=value):
            return f"{type(expr).__name__.lower()}({spell(value)})"
        case r.Present(value=value) | r.Transpose(value=value):
            return f"{type(expr).__name__.lower()}({spell(value)})"
    return type(expr).__name__


def spell_event(event: r.EventPattern) -> str:
    """`optimizer.step(optimizer: o)`."""
    return f"{', '.join(event.events)}{_filters(event.filters)}"


def _filters(filters: tuple[r.Filter, ...]) -> str:
    if not filters:
        return ""
    return "(" + ", ".join(f"{one.field}: {spell(one.value)}" for one in filters) + ")"


def spell_claim(claim: r.Claim) -> str:
    """`expect …` of a rule."""
    match claim:
        case r.Holds(condition):
            said = spell(condition)
        case r.Contains(event):
            said = f"contains {spell_event(event)}"
        case r.Ordered(events, edge):
            said = f" {edge} ".join(map(spell_event, events))
        case r.OnlyDuring(subject, change, events):
            what = f"changed({spell(subject)})" if change else spell(subject)
            said = f"{what} only during {' or '.join(map(spell_event, events))}"
    return f"expect {said}"
