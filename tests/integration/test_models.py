"""Models: listed, and one layer of one answers as torch's formula says."""
import json

import numpy as np
from reference import allowed_keys, torch_mha, write_torch_mha


def test_models_are_listed(daemon):
    listing = daemon.get("/v1/models").json
    assert listing["object"] == "list" and [m["id"] for m in listing["data"]] == ["m"]
    entry = daemon.get("/v1/models/m").json
    assert entry == listing["data"][0]
    assert entry["architecture"] == "torch-mha" and entry["layers"] == 1 and entry["heads"] == 4


def test_a_layer_answers_as_torchs_formula(daemon, models):
    rng = np.random.default_rng(3)
    query = rng.uniform(-1, 1, (3, 7, 16)).astype(np.float32)
    key = rng.uniform(-1, 1, (3, 5, 16)).astype(np.float32)
    reply = daemon.post("/v1/models/m/attention", dict(query=query.tolist(), key=key.tolist(), causal="top_left"))
    assert reply.status == 200, reply
    for n in range(3):
        expected, weights = torch_mha(models[1], 4, query[n], key[n], key[n], allowed_keys(7, 5, "top_left"))
        np.testing.assert_allclose(reply.json["context"][n], expected, atol=1e-5)
        np.testing.assert_allclose(reply.json["weights"][n], weights, atol=1e-5)


def test_self_attention_is_the_default(daemon, models):
    x = np.random.default_rng(4).uniform(-1, 1, (6, 16)).astype(np.float32)
    reply = daemon.post("/v1/models/m/attention", dict(embeddings=x.tolist(), layer=0, kind="self"))
    expected, _ = torch_mha(models[1], 4, x, x, x, np.ones((6, 6), bool))
    np.testing.assert_allclose(reply.json["context"], expected, atol=1e-5)


def test_what_is_the_models_cannot_be_given(daemon):
    x = [[0] * 16]
    for field, value in (("heads", 2), ("scale", 1), ("projections", {}), ("kv_heads", 2)):
        reply = daemon.post("/v1/models/m/attention", {"query": x, field: value})
        assert reply.status == 400 and reply.json["pointer"] == "/" + field, (field, reply)
    for fields, pointer in ((dict(layer=1), "/layer"), (dict(kind="cross"), "/kind"), (dict(layer=-1), "/layer")):
        reply = daemon.post("/v1/models/m/attention", {"query": x, **fields})
        assert reply.status == 400 and reply.json["pointer"] == pointer, reply


def test_a_width_that_is_not_the_models_is_told_with_both(daemon):
    reply = daemon.post("/v1/models/m/attention", dict(query=[[1, 2]]))
    assert (reply.status, reply.json["code"]) == (400, "shape-mismatch")
    assert "16" in reply.json["detail"] and "2" in reply.json["detail"]


def test_the_embedded_model_is_served_by_default(start):
    default = start()
    data = default.get("/v1/models").json["data"]
    assert len(data) >= 1
    width = data[0]["width"] if "width" in data[0] else data[0]["widths"]["query"]
    reply = default.post(f"/v1/models/{data[0]['id']}/attention", dict(query=[[0.5] * width] * 3))
    assert reply.status == 200 and np.array(reply.json["weights"]).shape[1:] == (3, 3)


def test_an_empty_folder_serves_none_and_is_ready(start, tmp_path):
    empty = start("--models", tmp_path)
    assert empty.get("/healthz").status == 200
    assert empty.get("/v1/models").json == {"object": "list", "data": []}


def test_a_broken_model_does_not_keep_the_others_from_starting(start, tmp_path):
    write_torch_mha(tmp_path / "good", 16, 4)
    write_torch_mha(tmp_path / "zeta", 16, 4)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text(json.dumps({"model_type": "torch-mha", "num_heads": 2}))
    daemon = start("--models", tmp_path)
    assert [model["id"] for model in daemon.get("/v1/models").json["data"]] == ["good", "zeta"]
    assert daemon.post("/v1/models/zeta/attention", dict(query=[[0.5] * 16])).status == 200
    why = next(line for line in daemon.log if "event=model-failed" in line)
    assert "model bad" in why and "reason=" in why


def test_where_every_model_is_broken_the_start_ends_with_its_name(tmp_path):
    import subprocess

    from daemon import BINARY
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "config.json").write_text(json.dumps({"model_type": "torch-mha", "num_heads": 2}))
    (tmp_path / "bad" / "model.safetensors").write_bytes(b"\xff" * 16)
    done = subprocess.run([BINARY, "--listen", "127.0.0.1:0", "--models", str(tmp_path)], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode != 0 and "bad" in done.stderr
