"""Value: the base of classes that hold fields, for the price of a plain class at start-up."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any, ClassVar, TypeVar

    from typing_extensions import Self, dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: object) -> object:
        """Return a decorator that changes nothing: the real one is for type checkers."""
        return lambda decorated: decorated


class _Fresh:
    """The factory of a default."""

    __slots__ = ("factory",)

    def __init__(self, factory: Callable[[], object]) -> None:
        self.factory = factory


def fresh(*, factory: Callable[[], T]) -> T:
    """Return a default that is created for each value: `parts: list[str] = fresh(factory=list)`."""
    return _Fresh(factory)  # type: ignore[return-value]


@dataclass_transform(field_specifiers=(fresh,))
class _ValueType(type):
    """Makes slots and a constructor from the annotations of a class.

    `__init__` is compiled when the first value is made, so that importing a class that is not used costs nothing.
    """

    _fields: tuple[str, ...]
    _defaults: dict[str, Any]

    def __new__(
        meta, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, frozen: bool = False
    ) -> _ValueType:
        own = tuple(
            key for key, kind in namespace.get("__annotations__", {}).items() if not kind.startswith("ClassVar")
        )
        defaults = {key: namespace.pop(key) for key in own if key in namespace}
        namespace["__slots__"] = own
        if frozen:
            namespace = {"__setattr__": _refuse, "__delattr__": _refuse, "__hash__": _hash} | namespace
        made = super().__new__(meta, name, bases, namespace)
        parent = bases[0] if bases else None
        made._fields = (*getattr(parent, "_fields", ()), *own)
        made._defaults = {**getattr(parent, "_defaults", {}), **defaults}
        if own and "__init__" not in namespace:
            made.__init__ = _compiled_by_first_call(made)  # type: ignore[misc]
        return made

    @property
    def __signature__(cls) -> Signature:
        from inspect import signature

        _compile(getattr(cls.__init__, "_owner", None))  # type: ignore[misc]
        whole = signature(cls.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def _compiled_by_first_call(cls: _ValueType) -> Callable[..., None]:
    def construct(self: Value, *arguments: object, **named: object) -> None:
        _compile(cls)
        cls.__init__(self, *arguments, **named)  # type: ignore[misc]

    construct._owner = cls  # type: ignore[attr-defined]
    return construct


def _compile(cls: _ValueType | None) -> None:
    if cls is None:  # its constructor is compiled, or written by hand
        return
    defaults = cls._defaults
    annotations: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        annotations.update(base.__dict__.get("__annotations__", {}))  # noqa: RUF063 (3.10, and no import)
    frozen = cls.__setattr__ is not object.__setattr__  # type: ignore[comparison-overlap]
    scope: dict[str, Any] = {"_assign": object.__setattr__, "_defaults": defaults}
    parameters, lines = ["self"], []
    for name in cls._fields:
        value = name
        if isinstance(defaults.get(name), _Fresh):
            parameters.append(f"{name}=...")
            value = f"_defaults[{name!r}].factory() if {name} is ... else {name}"
        else:
            parameters.append(f"{name}=_defaults[{name!r}]" if name in defaults else name)
            if annotations[name].startswith("Sequence[") and not annotations[name].endswith("None"):
                value = f"tuple({name})"
        lines.append(f"_assign(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines)
    # compiled first: with a text, exec forgets that Ctrl-C ends the interpreter, whose exit code would then be 1 instead of SIGINT
    exec(compile(text, cls.__name__, "exec"), scope)
    constructor = scope["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    constructor.__annotations__ = annotations
    cls.__init__ = constructor  # type: ignore[misc]


def _refuse(self: Value, name: str, *_: object) -> None:
    raise AttributeError(f"a {type(self).__name__} is a value and cannot be changed")


def _hash(self: Value) -> int:
    return hash(tuple(map(self.__getattribute__, self._fields)))


class Value(metaclass=_ValueType):
    """A class of annotated fields with slots, a constructor, equality, repr and `replace`.

    Written like a dataclass, in a module with `from __future__ import annotations`; fields of a base come first, as there. A class
    made with `frozen=True` cannot be changed and can be hashed. A hand-written `__init__` is kept. What is given for a field
    annotated as `Sequence[…]` is stored as a tuple, and `__post_init__` is called last.
    """

    _fields: ClassVar[tuple[str, ...]]

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self._fields} | changes)

    def to_plain(self) -> dict[str, Any]:
        """Return the fields as plain data: values inside become dicts, tuples become lists."""
        return {name: _plain(getattr(self, name)) for name in self._fields}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._fields)


_MAPPINGS = (dict, type(Value.__dict__))  # the second is MappingProxyType


def _plain(value: object) -> object:
    if isinstance(value, Value):
        return value.to_plain()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, _MAPPINGS):
        return {key: _plain(item) for key, item in value.items()}
    return value
