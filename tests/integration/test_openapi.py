"""doc/openapi.yaml describes what works: every path answers as it says, every field and code is there."""
import json
import re

import numpy as np
import pytest
import tensors
import yaml
from daemon import ROOT, Daemon

DESCRIPTION = yaml.safe_load((ROOT / "doc/openapi.yaml").read_text())
OPERATIONS = [(path, method) for path, methods in DESCRIPTION["paths"].items() for method in methods]
SCHEMAS = DESCRIPTION["components"]["schemas"]
KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """A daemon that serves the models that the examples name."""
    folder = tmp_path_factory.mktemp("models")
    for model in (ROOT / "config/models/tiny-mha", ROOT / "tests/models/gpt2-head"):
        (folder / model.name).symlink_to(model)
    with Daemon("--models", folder) as running:
        yield running


def place_of(path, method):
    """The path with the example in the place of its parameter."""
    for parameter in map(resolve, DESCRIPTION["paths"][path][method].get("parameters", [])):
        if parameter["in"] == "path":
            path = path.replace("{%s}" % parameter["name"], parameter["example"])
    return path


def resolve(node):
    while "$ref" in node:
        found = DESCRIPTION
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def matches(schema, value):
    """Whether a value has the type, the required members and the constants of a schema, members included."""
    schema = resolve(schema)
    wanted = schema.get("type")
    if wanted and not any(isinstance(value, KINDS[kind]) for kind in ([wanted] if isinstance(wanted, str) else wanted)):
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, list):
        return all(matches(schema.get("items", {}), item) for item in value)
    if not isinstance(value, dict):
        return True
    return set(schema.get("required", [])) <= set(value) and all(
        matches(part, value[name]) for name, part in schema.get("properties", {}).items() if name in value)


def send(daemon, path, method):
    operation, place = DESCRIPTION["paths"][path][method], place_of(path, method)
    if "requestBody" in operation:
        return daemon.post(place, operation["requestBody"]["content"]["application/json"]["example"])
    return daemon.request(method.upper(), place)


@pytest.mark.parametrize("path,method", OPERATIONS)
def test_each_operation_answers_its_example_as_described(embedded, path, method):
    send(embedded, "/v1/attention", "post")  # so that the latency has an entry
    reply = send(embedded, path, method)
    assert reply.status == 200, reply
    content = resolve(DESCRIPTION["paths"][path][method]["responses"]["200"])["content"]
    media = reply.headers["content-type"].split(";")[0]
    assert media in content, reply.headers
    if media == "application/json":
        assert matches(content[media]["schema"], reply.json), reply


@pytest.mark.parametrize("path,method", OPERATIONS)
def test_each_type_described_is_taken_and_given(embedded, path, method):
    operation = DESCRIPTION["paths"][path][method]
    if tensors.MEDIA not in operation.get("requestBody", {}).get("content", {}):
        return
    example = operation["requestBody"]["content"]["application/json"]["example"]
    fields = {name: np.float32(x) if name in ("query", "value", "embeddings") else x for name, x in example.items()}
    reply = tensors.send(embedded, tensors.body_of(fields), place_of(path, method))
    assert reply.status == 200, reply
    described = operation["responses"]["200"]
    assert reply.headers["content-type"] in described["content"]
    assert reply.headers["vary"] == described["headers"]["Vary"]["schema"]["const"]
    text = resolve(described["content"]["application/json"]["schema"])
    assert set(tensors.nested(reply)) <= set(text["properties"])


@pytest.mark.parametrize("path", DESCRIPTION["paths"])
def test_each_path_allows_the_methods_described(embedded, path):
    place = path.replace("{model}", "tiny-mha")
    allowed = embedded.request("OPTIONS", place).headers["allow"]
    described = {method.upper() for method in DESCRIPTION["paths"][path]}
    assert described <= {method.strip() for method in allowed.split(",")}
    wrong = embedded.request("DELETE", place)
    assert (wrong.status, wrong.json["code"]) == (405, "method-not-allowed")
    assert matches(SCHEMAS["Problem"], wrong.json)


@pytest.mark.parametrize("path,schema", [("/v1/attention", "AttentionRequest"),
                                         ("/v1/models/tiny-mha/attention", "ModelAttentionRequest"),
                                         ("/v1/models/gpt2-head/forward", "ForwardRequest")])
def test_each_field_described_is_known_to_the_daemon(embedded, path, schema):
    shared = {} if schema == "ForwardRequest" else SCHEMAS["Options"]["properties"]
    for field in {*SCHEMAS[schema]["properties"], *shared}:
        reply = embedded.post(path, {field: None})
        assert reply.status == 400 and reply.json["code"] != "unknown-field", (field, reply)
    assert embedded.post(path, {"no_such_field": 1}).json["code"] == "unknown-field"


def test_each_field_the_daemon_knows_is_described():
    source = (ROOT / "server/codec/attention_fields.c").read_text()
    known = re.findall(r'\{"(\w+)", (?:EVERYWHERE|ON_TENSORS|ON_MODEL),', source)
    described = {name for part in ("Options", "AttentionRequest", "ModelAttentionRequest")
                 for name in SCHEMAS[part]["properties"]}
    assert len(known) > 15 and set(known) == described


def test_each_field_of_a_forward_request_is_described():
    source = (ROOT / "server/codec/forward_fields.c").read_text()
    known = re.findall(r'\{"(\w+)", (?:read_|pass_)', source)
    assert len(known) > 15 and set(known) == set(SCHEMAS["ForwardRequest"]["properties"])


def test_the_codes_described_are_those_of_the_daemon():
    source = (ROOT / "server/codec/problem.h").read_text()
    codes = re.findall(r'X\(\w+, "([a-z0-9-]+)", \d+,', source)
    assert [code for code in codes if code != "none"] == SCHEMAS["Problem"]["properties"]["code"]["enum"]


def test_the_version_described_is_the_version():
    assert DESCRIPTION["info"]["version"] == (ROOT / "VERSION").read_text().strip()


def test_the_description_is_plain_json_data():
    json.dumps(DESCRIPTION)
