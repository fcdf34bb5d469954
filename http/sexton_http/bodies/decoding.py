"""Reads JSON bodies and queries into their declared types, and says by pointer what is wrong."""

import re
from functools import cache
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
import trio

from sexton_http.answers import Problem
from sexton_http.bodies.ids import CANONICAL, check_ids, has_ids, may_lack_dashes
from sexton_http.bodies.json_faults import check_keys, check_surrogates, escaped, surely_once
from sexton_http.bodies.numbers import load_json
from sexton_http.bodies.weight import MAX_ESCAPES, SMALL_BODY, check_depth, weigh

MAX_QUERY_FIELDS: Final = 64
MAX_FRACTIONS: Final = 4_096
"""With more dots than this, 9.0 is no longer read as nine: each costs half a microsecond."""

_ANOTHER_FIELD: Final = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`")
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_WHOLE_WANTED: Final = re.compile(r"Expected `[^`]*\bint\b[^`]*`, got `float`")
_DIGITS: Final = re.compile(r"[0-9]+")
_JSON_TYPE: Final = re.compile(r"application/(?:json|[\w.!#$&^-]+\+json)\s*(?:;.*)?", re.IGNORECASE)

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


def is_json(content_type: str | None) -> bool:
    """``application/json`` or ``application/…+json``, whatever its parameters.

    >>> is_json("application/problem+json; charset=utf-8")
    True
    >>> is_json("text/json")
    False
    """
    return content_type is not None and _JSON_TYPE.fullmatch(content_type.strip()) is not None


class BodyDecoder(Generic[T]):
    """For one declared type: unknown and duplicate fields, wrong types and deep nesting are refused."""

    def __init__(self, shape: type[T]) -> None:
        self._shape = shape
        self._decoder = msgspec.json.Decoder(shape)
        self._is_closed = is_closed(shape)
        self._has_ids = has_ids(shape)
        self.max_escapes: int = getattr(shape, "max_escapes", MAX_ESCAPES)

    def decode(self, body: bytes) -> T:
        """Raises Problem UZ-REQ-001, or UZ-UUIDV7-009 for an id of the wrong shape."""
        value = self.read(body)
        self.check(body)
        return value

    async def decode_in_steps(self, body: bytes) -> T:
        """The same for a large body: it is looked through first, and others have their turn in between."""
        await weigh(body, self.max_escapes)
        value = self.read(body)
        await trio.lowlevel.checkpoint()
        self.check(body)
        await trio.lowlevel.checkpoint()
        return value

    def read(self, body: bytes) -> T:
        """As far as types go. Raises Problem."""
        if not self._is_closed:
            check_depth(body)
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError as fault:
            return self._decode_slowly(body, fault)
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            if len(body) <= SMALL_BODY:
                check_depth(body)
                check_surrogates(body)
            raise Problem("UZ-REQ-001", f"the body is not JSON: {fault}") from fault

    def check(self, body: bytes) -> None:
        """What types do not say: keys that stand twice, NUL, and ids without their dashes. Raises Problem."""
        if not surely_once(body):
            check_keys(body)
        if self._has_ids and may_lack_dashes(body):
            check_ids(self._shape, load_json(body))

    def _decode_slowly(self, body: bytes, first: msgspec.ValidationError) -> T:
        """JSON has one kind of number: 9.0 is the integer nine, which the fast decoder does not grant."""
        if not _WHOLE_WANTED.match(str(first)) or body.count(b".") > MAX_FRACTIONS:
            raise invalid(first) from first
        check_depth(body)
        plain = load_json(body, parse_float=_integer_if_whole)
        try:
            return msgspec.convert(plain, self._shape)
        except msgspec.ValidationError as fault:
            raise invalid(fault) from fault


def is_closed(shape: Any) -> bool:
    """Whether all that may stand in its JSON is declared, to the last field: then it is as deep as that."""
    return _is_closed(msgspec.inspect.type_info(shape))


def _is_closed(info: msgspec.inspect.Type) -> bool:
    match info:
        case msgspec.inspect.StructType(fields=fields, forbid_unknown_fields=forbidden):
            return forbidden and all(_is_closed(field.type) for field in fields)
        case msgspec.inspect.CollectionType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item):
            return _is_closed(item)
        case msgspec.inspect.UnionType(types=types):
            return all(map(_is_closed, types))
        case msgspec.inspect.Metadata(type=inner):
            return _is_closed(inner)
        case (
            msgspec.inspect.AnyType()
            | msgspec.inspect.RawType()
            | msgspec.inspect.DictType()
            | msgspec.inspect.CustomType()
        ):
            return False
        case _:
            return True


def _integer_if_whole(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def invalid(fault: msgspec.ValidationError) -> Problem:
    text, _, path = str(fault).partition(" - at `")
    pointer = pointer_of(path.rstrip("`"), text)
    code = "UZ-UUIDV7-009" if text == "Invalid UUID" else "UZ-REQ-001"
    return Problem(code, f"{pointer or 'the body'}: {_sentence(text)}", facts={"pointer": pointer})


def _sentence(text: str) -> str:
    return text[:1].lower() + text[1:]


def pointer_of(path: str, text: str = "") -> str:
    """The RFC 6901 pointer to a place that msgspec names its own way; a field it names in words is added.

    >>> pointer_of("$.leases[0].lease_id")
    '/leases/0/lease_id'
    >>> pointer_of("$", "Object missing required field `name`")
    '/name'
    """
    steps = [name or index for name, index in _STEP.findall(path)]
    another = _ANOTHER_FIELD.fullmatch(text)
    if another:
        steps.append(another[1])
    return "".join("/" + escaped(step) for step in steps)


def _options(hint: Any) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(hint)
    return list(schema.get("anyOf", (schema,)))


def _is_text(hint: Any) -> bool:
    """Whether any text is a value of the type, as it stands."""
    return any(
        option.get("type") == "string" and "format" not in option and "enum" not in option
        for option in _options(hint)
    )


def _is_number(hint: Any) -> bool:
    return any(option.get("type") == "integer" for option in _options(hint))


def _is_uuid(hint: Any) -> bool:
    return any(option.get("format") == "uuid" for option in _options(hint))


class QueryDecoder(Generic[S]):
    """For one declared type: known fields are converted from text, unknown ones pass, none may come twice.

    ``what`` is how an error names the whole: a form is spelled like a query.
    """

    def __init__(self, shape: type[S], what: str = "the query") -> None:
        self._shape = shape
        self._what = what
        fields = msgspec.structs.fields(shape)
        self._known = frozenset(field.encode_name for field in fields)
        self._texts = frozenset(field.encode_name for field in fields if _is_text(field.type))
        self._numbers = frozenset(field.encode_name for field in fields if _is_number(field.type))
        self._uuids = frozenset(field.encode_name for field in fields if _is_uuid(field.type))

    def decode(self, query: bytes) -> S:
        """Raises Problem UZ-REQ-001, or UZ-UUIDV7-009 for an id of the wrong shape."""
        fields: dict[str, str] = {}
        try:
            text = query.decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS)
        except ValueError as fault:
            raise Problem("UZ-REQ-001", f"{self._what} cannot be read") from fault
        for name, value in pairs:
            if name not in self._known:
                continue
            if name in fields:
                raise Problem("UZ-REQ-001", f"{self._what} has {name!r} twice")
            if value.lower() == "null" and name not in self._texts:
                # To msgspec this is None; a query can leave a field out, but not say that it is nothing.
                raise Problem("UZ-REQ-001", f"{name}: must not be null", facts={"parameter": name})
            if "\0" in value:
                raise Problem(
                    "UZ-REQ-001", f"{name}: must not contain the character U+0000", facts={"parameter": name}
                )
            fields[name] = value
        self._check_spelling(fields)
        try:
            return msgspec.convert(fields, self._shape, strict=False)
        except msgspec.ValidationError as fault:
            text, _, path = str(fault).partition(" - at `")
            name = pointer_of(path.rstrip("`"), text).strip("/")
            code = "UZ-UUIDV7-009" if text == "Invalid UUID" else "UZ-REQ-001"
            raise Problem(code, f"{name}: {_sentence(text)}", facts={"parameter": name}) from fault

    def _check_spelling(self, fields: dict[str, str]) -> None:
        """msgspec takes 1e1 for ten, and ids without their dashes."""
        for name, value in fields.items():
            if name in self._numbers and _DIGITS.fullmatch(value) is None:
                raise Problem("UZ-REQ-001", f"{name}: digits from 0 to 9 only", facts={"parameter": name})
            if name in self._uuids and CANONICAL.fullmatch(value) is None:
                raise Problem("UZ-UUIDV7-009", f"{name}: invalid UUID", facts={"parameter": name})


def query_decoder_of(shape: type[S], what: str = "the query") -> QueryDecoder[S]:
    """The decoder of a declared type; routes that take the same share one."""
    decoder: QueryDecoder[S] = _query_decoder_of(shape, what)
    return decoder


@cache
def _query_decoder_of(shape: Any, what: str) -> QueryDecoder[Any]:
    return QueryDecoder(shape, what)
