"""A small part of JSON Schema: what it can say is checked, what it cannot say is refused."""

from typing import Any

import pytest

from adjourn.core.edit.argument_schema import problems, require_schema
from adjourn.core.errors import Misuse

TABLE = {
    "type": "object",
    "properties": {
        "table": {"type": "string", "enum": ["users", "drafts"]},
        "rows": {"type": "integer", "minimum": 1, "maximum": 10},
        "note": {"type": ["string", "null"], "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "share": {"type": "number"},
    },
    "required": ["table"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"table": "users"},
        {"table": "drafts", "rows": 10, "note": "abc", "tags": ["x"], "share": 0.5},
        {"table": "users", "note": None, "share": 3},
    ],
)
def test_what_fits_has_no_problems(value: Any) -> None:
    assert list(problems(value, TABLE)) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "'table' is missing"),
        ({"table": "logs"}, "'table' must be one of users, drafts"),
        ({"table": 1}, "'table' must be string"),
        ({"table": "users", "rows": 0}, "'rows' must be at least 1"),
        ({"table": "users", "rows": 11}, "'rows' must be at most 10"),
        ({"table": "users", "rows": True}, "'rows' must be integer"),
        ({"table": "users", "rows": 1.5}, "'rows' must be integer"),
        ({"table": "users", "note": "a"}, "'note' must have at least 2 characters"),
        ({"table": "users", "note": "abcdef"}, "'note' must have at most 5 characters"),
        ({"table": "users", "note": "A1"}, "'note' must match ^[a-z]+$"),
        ({"table": "users", "tags": []}, "'tags' must have at least 1 elements"),
        ({"table": "users", "tags": ["a", "b", "c"]}, "'tags' must have at most 2 elements"),
        ({"table": "users", "tags": ["a", 2]}, "'tags.1' must be string"),
        ({"table": "users", "drop": 1}, "'drop' is not an argument of this tool"),
        ([], "what is given must be object"),
    ],
)
def test_what_does_not_fit_is_named_by_its_key(value: Any, problem: str) -> None:
    assert problem in list(problems(value, TABLE))


def test_one_is_not_true() -> None:
    assert list(problems(True, {"enum": [1]})) != []  # noqa: FBT003 -- the value under test
    assert list(problems(1, {"enum": [1]})) == []


def test_what_is_not_named_may_have_a_shape_too() -> None:
    schema = {"additionalProperties": {"type": "integer"}}
    assert list(problems({"a": 1}, schema)) == []
    assert list(problems({"a": "1"}, schema)) == ["'a' must be integer"]


@pytest.mark.parametrize(
    "schema",
    [
        [],
        {"type": "text"},
        {"type": []},
        {"oneOf": []},
        {"$ref": "#/x"},
        {"properties": {"a": {"format": "email"}}},
        {"items": {"anyOf": []}},
        {"additionalProperties": {"not": {}}},
        {"enum": []},
        {"minimum": "1"},
        {"maxLength": -1},
        {"required": "table"},
        {"pattern": "("},
        {"pattern": "(a+)+"},
        {"pattern": 1},
        {"properties": []},
    ],
)
def test_a_schema_that_says_more_than_is_checked_is_refused(schema: Any) -> None:
    with pytest.raises(Misuse):
        require_schema(schema)


def test_a_schema_that_nests_without_end_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(50):
        schema = {"items": schema}
    with pytest.raises(Misuse, match="too deep"):
        require_schema(schema)


def test_a_schema_may_have_remarks() -> None:
    require_schema(TABLE | {"title": "t", "description": "d", "$schema": "s", "default": {}})
