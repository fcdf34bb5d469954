"""Finds the methods and the shapes of a client in what the generator has read of the document."""

import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from openapi_python_client.parser import GeneratorData
from openapi_python_client.parser.bodies import BodyType
from openapi_python_client.parser.openapi import Endpoint
from openapi_python_client.parser.properties import (
    AnyProperty,
    EnumProperty,
    LiteralEnumProperty,
    ModelProperty,
    Property,
)
from openapi_python_client.parser.properties.boolean import BooleanProperty
from openapi_python_client.parser.properties.const import ConstProperty
from openapi_python_client.parser.properties.date import DateProperty
from openapi_python_client.parser.properties.datetime import DateTimeProperty
from openapi_python_client.parser.properties.file import FileProperty
from openapi_python_client.parser.properties.float import FloatProperty
from openapi_python_client.parser.properties.int import IntProperty
from openapi_python_client.parser.properties.list_property import ListProperty
from openapi_python_client.parser.properties.none import NoneProperty
from openapi_python_client.parser.properties.protocol import PropertyProtocol
from openapi_python_client.parser.properties.string import StringProperty
from openapi_python_client.parser.properties.union import UnionProperty
from openapi_python_client.parser.properties.uuid import UuidProperty

from clients.maker.methods import Argument, Group, Method
from clients.maker.text import constant, doc

RENAMED: Final = {"zombie_id": "agent_id"}
"""What the interface calls by its oldest name, arguments call by the name that people use."""
SUCCESS: Final = range(200, 300)

SIMPLE: Final[Mapping[type[PropertyProtocol], tuple[str, str]]] = {
    AnyProperty: ("Any", "any"),
    BooleanProperty: ("bool", "bool"),
    DateProperty: ("date", "text"),
    DateTimeProperty: ("datetime", "text"),
    FileProperty: ("bytes", "text"),
    FloatProperty: ("float", "number"),
    IntProperty: ("int", "number"),
    NoneProperty: ("None", "none"),
    StringProperty: ("str", "text"),
    UuidProperty: ("str", "text"),
}
"""Each as a type of Python, and as the kind of JSON by which a reader tells alternatives apart."""


class Maker:
    """Turns what was read into what is written, and remembers which shapes are in use."""

    def __init__(self, data: GeneratorData, document: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self.data = data
        self.document = document
        self.names = names
        self.used: set[str] = set()
        self._models: dict[str, ModelProperty] = {model.class_info.name: model for model in self.data.models}
        self._operations = {
            operation["operationId"]: operation
            for methods in self.document["paths"].values()
            for operation in methods.values()
        }

    def endpoints(self) -> dict[str, Endpoint]:
        """Each that programs may call, by its operation's name."""
        left_out = {*self.names["left_out"]}
        tags = {*self.names["left_out_tags"]}
        return {
            str(endpoint.name): endpoint
            for collection in self.data.endpoint_collections_by_tag.values()
            for endpoint in collection.endpoints
            if endpoint.name not in left_out and self._operations[endpoint.name]["tags"][0] not in tags
        }

    def is_keyed(self, name: str) -> bool:
        """Whether the operation takes an idempotency key."""
        parameters = self._operations[name]["parameters"]
        return any(one.get("$ref", "").endswith("/IdempotencyKey") for one in parameters)

    def groups(self) -> list[Group]:
        endpoints = self.endpoints()
        streams = {*self.names["streams"]}
        table: dict[str, dict[str, str]] = {name: dict(group) for name, group in self.names["groups"].items()}
        placed = {operation for group in table.values() for operation in group.values()}
        unknown = sorted((placed | streams) - set(endpoints))
        if unknown:
            sys.exit(f"clients/names.toml names operations that are not there: {', '.join(unknown)}")
        for name in endpoints:
            if name not in placed | streams:
                tag = self._operations[name]["tags"][0]
                table.setdefault(re.sub(r"[^a-z]+", "_", tag.lower()), {})[name] = name
        extended = {*self.names["extended"]}
        return [
            Group(
                name,
                self._about(group, endpoints),
                [self._method(method, endpoints[operation]) for method, operation in group.items()],
                name in extended,
            )
            for name, group in sorted(table.items())
        ]

    def _about(self, group: Mapping[str, str], endpoints: Mapping[str, Endpoint]) -> str:
        tags = Counter(self._operations[str(endpoints[name].name)]["tags"][0] for name in group.values())
        [(usual, _)] = tags.most_common(1)
        return str(next(tag["description"] for tag in self.document["tags"] if tag["name"] == usual))

    def _method(self, name: str, endpoint: Endpoint) -> Method:
        path = [self._argument(prop) for prop in endpoint.path_parameters]
        query = [self._argument(prop) for prop in endpoint.query_parameters]
        body, raw = self._body(endpoint)
        # What the path says already may be left out of the body.
        body = [one for one in body if one.required or one.name not in {other.name for other in path}]
        every = [argument.name for argument in (*path, *query, *body)]
        if len(set(every)) != len(every):
            sys.exit(f"{endpoint.name} has two arguments of one name: {every}")
        returns, item, paged_by = self._returns(endpoint, {argument.wire for argument in query})
        operation = self._operations[str(endpoint.name)]
        return Method(
            name=name,
            constant=str(endpoint.name).upper(),
            doc=doc(operation["summary"], operation.get("description", "")),
            returns=returns,
            path=path,
            query=query,
            body=body,
            raw_body=raw,
            keyed=self.is_keyed(str(endpoint.name)),
            item=item,
            paged_by=paged_by,
        )

    def _argument(self, prop: Property) -> Argument:
        wire = prop.name.get_untrusted_value()
        name = RENAMED.get(wire, str(prop.python_name))
        spelled, _ = self._type(prop, argument=True)
        optional = not prop.required
        if optional:
            spelled = " | ".join(part for part in spelled.split(" | ") if part != "None")
        return Argument(name, wire, spelled, required=not optional)

    def _body(self, endpoint: Endpoint) -> tuple[list[Argument], str | None]:
        for body in endpoint.bodies:
            if body.body_type is BodyType.CONTENT:
                return [], "bytes"
            if body.body_type is BodyType.JSON and isinstance(body.prop, ModelProperty):
                model = self._models[body.prop.class_info.name]
                return [self._argument(prop) for prop in _properties(model)], None
            if body.body_type is BodyType.JSON:
                sys.exit(f"{endpoint.name} takes a body that is no object")
        return [], None

    def _returns(self, endpoint: Endpoint, query: set[str]) -> tuple[str, str | None, str | None]:
        for response in endpoint.responses.patterns:
            if response.status_code.range is None or response.status_code.range[0] not in SUCCESS:
                continue
            attribute = response.source["attribute"]
            if attribute == "None":
                return "None", None, None
            if attribute != "response.json()":
                return "bytes", None, None
            spelled, _ = self._type(response.prop)
            item, paged_by = self._item(response.prop, query)
            return spelled, item, paged_by
        return "None", None, None

    def _item(self, prop: Property, query: set[str]) -> tuple[str | None, str | None]:
        if not isinstance(prop, ModelProperty):
            return None, None
        fields = {
            str(one.name.get_untrusted_value()): one
            for one in _properties(self._models[prop.class_info.name])
        }
        items = fields.get("items")
        if not isinstance(items, ListProperty):
            return None, None
        inner, _ = self._type(items.inner_property)
        if "cursor" in query and "next_cursor" in fields:
            return inner, "cursor"
        if "page" in query and "page" in fields:
            return inner, "page"
        return None, None

    def _type(self, prop: PropertyProtocol, *, argument: bool = False) -> tuple[str, str]:
        """Its type in Python, and its kind in JSON."""
        if type(prop) in SIMPLE:
            return SIMPLE[type(prop)]
        match prop:
            case ConstProperty(value=value):
                return ("str", "text") if isinstance(value.raw_value, str) else ("Any", "any")
            case EnumProperty() | LiteralEnumProperty():
                self.used.add(prop.class_info.name)
                if prop.value_type is int:
                    return "int", "number"
                return f"models.{'Any' if argument else ''}{prop.class_info.name}", "text"
            case ListProperty(inner_property=inner):
                spelled, _ = self._type(inner, argument=argument)
                return f"{'Sequence' if argument else 'list'}[{spelled}]", "list"
            case ModelProperty():
                return self._model(prop), "object"
            case UnionProperty(inner_properties=options):
                return self._union([self._type(option, argument=argument) for option in options])
            case _:
                sys.exit(f"no type is known for {prop!r}")

    def _model(self, prop: ModelProperty) -> str:
        model = self._models[prop.class_info.name]
        if not _properties(model):
            extra = model.additional_properties
            inner = "Any" if extra is None else self._type(extra)[0]
            return f"dict[str, {inner}]"
        self.used.add(prop.class_info.name)
        return f"models.{prop.class_info.name}"

    @staticmethod
    def _union(options: list[tuple[str, str]]) -> tuple[str, str]:
        """All of them, where their JSON tells which it is; else anything."""
        kinds = [kind for _, kind in dict.fromkeys(options)]
        if "any" in kinds or len(set(kinds)) != len(kinds):
            return "Any", "any"
        ordered = sorted(
            dict.fromkeys(spelled for spelled, _ in options), key=lambda spelled: spelled == "None"
        )
        return " | ".join(ordered), "union"

    def shapes(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The words and the objects that are in use, each with all that it needs."""
        objects: dict[str, dict[str, Any]] = {}
        while ahead := sorted(name for name in self.used if name in self._models and name not in objects):
            for name in ahead:
                objects[name] = self._object(self._models[name])
        words = [
            {
                "name": enum.class_info.name,
                "doc": doc(_text(enum.description) or "One of a set of words.", ""),
                "members": [(constant(value), value) for value in _values(enum)],
            }
            for enum in self.data.enums
            if enum.class_info.name in self.used and enum.value_type is not int
        ]
        return sorted(words, key=lambda one: one["name"]), [objects[name] for name in sorted(objects)]

    def _object(self, model: ModelProperty) -> dict[str, Any]:
        fields = []
        for prop in _properties(model):
            spelled, _ = self._type(prop)
            spelled = spelled.replace("models.", "")
            wire, name = prop.name.get_untrusted_value(), str(prop.python_name)
            if not prop.required and "None" not in spelled.split(" | ") and spelled != "Any":
                spelled += " | None"
            if wire != name:
                default = f'msgspec.field(name="{wire}"' + ("" if prop.required else ", default=None") + ")"
            else:
                default = "" if prop.required else "None"
            fields.append(f"{name}: {spelled}" + (f" = {default}" if default else ""))
        return {
            "name": model.class_info.name,
            "doc": doc(_text(model.description) or "", ""),
            "fields": fields,
        }


def _properties(model: ModelProperty) -> list[Property]:
    return [*(model.required_properties or ()), *(model.optional_properties or ())]


def _values(enum: EnumProperty | LiteralEnumProperty) -> list[str]:
    values = enum.values.values() if isinstance(enum, EnumProperty) else enum.values
    return sorted(str(value) for value in values)


def _text(value: Any) -> str:
    return "" if value is None else str(value.get_untrusted_value())
