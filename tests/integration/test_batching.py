"""Same-length batches form under load, and nobody can tell from the reply."""
import json

import numpy as np
import pytest
from daemon import runnable
from load import Busy, body_of, together


def strip(reply):
    assert reply.status == 200, reply
    return reply.body


def test_64_requests_of_two_lengths_run_in_two_calls(start):
    one = start("--workers", 1, "--max-batch", 32, "--batch-max-age", 5000)
    with Busy(one, length=8000):
        before = one.metric("attnd_batch_sequences_count")
        replies = together(one, [body_of(4 + 3 * (n % 2), 8, n) for n in range(64)])
    assert [r.headers["x-batch-size"] for r in replies] == ["32"] * 64
    assert one.metric("attnd_batch_sequences_count") - before <= 3  # the busy one and two


def test_a_reply_does_not_depend_on_batch_mates(start, models):
    one = start("--workers", 1, "--models", models[0])
    path = "/v1/models/m/attention"
    bodies = [body_of(9, 16, n) for n in range(40)]
    alone = [strip(one.post(path, b)) for b in bodies]
    with Busy(one, length=8000):
        crowd = together(one, bodies, path)
    assert max(int(r.headers["x-batch-size"]) for r in crowd) >= 9
    assert [strip(r) for r in crowd] == alone


def test_a_reply_does_not_depend_on_workers_or_kernels_batching(start, models):
    bodies = [(path, body_of(length, 16, length)) for length in (1, 7, 200)
              for path in ("/v1/models/m/attention", "/v1/attention")]
    answers = []
    for flags in (("--workers", 1), ("--workers", 2), ("--workers", 8), ("--workers", 2, "--max-batch", 1)):
        some = start("--models", models[0], *flags)
        answers.append([strip(some.post(path, body)) for path, body in bodies])
    assert all(a == answers[0] for a in answers)


def test_a_large_body_and_reply_in_parts_do_not_depend_on_workers(start):
    bodies = [body_of(400, 256, n, heads=4) for n in range(3)]  # 1 MB each, 7 MB of weights come back
    wrong = bodies[0][:-200_000] + "x" + bodies[0][-200_000:]
    answers, refusals = [], []
    for workers in (1, 4):
        some = start("--workers", workers)
        answers.append([strip(reply) for reply in together(some, bodies * 2)])
        refusals.append(some.post("/v1/attention", wrong))
    assert answers[0] == answers[1] and answers[0][:3] == answers[0][3:]
    assert len(json.loads(answers[0][0])["weights"][3][399]) == 400
    assert refusals[0].status == 400 and f"byte {len(wrong) - 200_001}" in refusals[0].json["detail"]
    assert refusals[0].json["detail"] == refusals[1].json["detail"]


@pytest.mark.parametrize("kernels", ["native", "blas"])
def test_reference_kernels_serve_and_agree(start, models, kernels):
    plain = start("--models", models[0], "--kernels", "reference")
    fast = start("--models", models[0], "--kernels", runnable(kernels))
    body = body_of(33, 16, 5)
    for path in ("/v1/models/m/attention", "/v1/attention"):
        a, b = (one.post(path, body).json for one in (plain, fast))
        np.testing.assert_allclose(a["context"], b["context"], atol=1e-5)
        np.testing.assert_allclose(a["weights"], b["weights"], atol=1e-5)
    bodies = [body_of(9, 16, n) for n in range(12)]
    alone = [strip(plain.post("/v1/models/m/attention", b)) for b in bodies]
    assert [strip(r) for r in together(plain, bodies, "/v1/models/m/attention")] == alone


def test_the_context_does_not_depend_on_the_outputs_asked_for(daemon):
    full = json.loads(body_of(50, 8, 1, heads=2))
    contexts = [daemon.post("/v1/attention", {**full, "weights": w}).json["context"] for w in (True, False, "mean")]
    assert contexts[0] == contexts[1] == contexts[2]


def test_a_repeated_call_gives_the_same_bits(daemon):
    body = body_of(120, 32, 2, heads=4)
    assert len({strip(daemon.post("/v1/attention", body)) for _ in range(4)}) == 1


def test_a_request_larger_than_a_batch_runs_as_several_calls(start):
    one = start("--workers", 1, "--max-batch", 4)
    x = np.random.default_rng(0).uniform(-1, 1, (11, 5, 6)).astype(np.float32).tolist()
    reply = one.attend(query=x)
    assert reply.status == 200 and reply.headers["x-batch-size"] == "4"
    single = [one.attend(query=s).json["context"] for s in x]
    assert reply.json["context"] == single


def test_batch_wait_holds_a_batch_open_for_more(start):
    waiting = start("--workers", 2, "--batch-wait", 400, "--max-batch", 6, "--batch-max-age", 5000)
    replies = together(waiting, [body_of(5, 4, n) for n in range(6)])
    assert {r.headers["x-batch-size"] for r in replies} == {"6"}
