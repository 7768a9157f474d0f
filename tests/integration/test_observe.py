"""Metrics that promtool accepts, health while busy, and latency against length."""
import math
import shutil
import subprocess
import threading
import time

import pytest
from daemon import SLOW
from load import Busy, body_of, together


def test_metrics_pass_promtool(daemon):
    if not shutil.which("promtool"):
        pytest.skip("promtool (package prometheus) is not installed")
    together(daemon, [body_of(3 + n, 4, n) for n in range(10)])
    text = daemon.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    done = subprocess.run(["promtool", "check", "metrics"], input=text.body, capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()


def test_the_metrics_of_the_contract_are_there(daemon):
    daemon.attend(query=[[1]])
    text = daemon.get("/metrics").body.decode()
    for name in ("attnd_request_duration_seconds_bucket", "attnd_stage_duration_seconds_bucket",
                 "attnd_batch_sequences_bucket", "attnd_batch_tokens_bucket", "attnd_queue_depth",
                 "attnd_inflight_bytes", "attnd_workers_busy", "attnd_requests_total", "attnd_build_info",
                 "process_resident_memory_bytes"):
        assert f"\n{name}" in text, name


def test_many_urls_add_no_series(daemon):
    def series():
        return len([x for x in daemon.get("/metrics").body.decode().splitlines() if not x.startswith("#")])

    daemon.get("/v1/x")
    before = series()
    for n in range(300):
        daemon.get(f"/v1/x{n}")
        daemon.post(f"/v1/models/x{n}/attention", "{}")
    assert series() - before <= 3


def test_the_length_label_is_a_power_of_two(start):
    one = start()
    one.post("/v1/attention", body_of(33, 4))
    assert 'attnd_request_duration_seconds_count{operation="attention",sequence_length="64"} 1' in \
        one.get("/metrics").body.decode()


def test_health_stays_ok_while_the_worker_is_busy(start):
    one = start("--workers", 1)
    with Busy(one, length=6000):
        begun = time.monotonic()
        assert one.get("/healthz").json == {"status": "ok"}
        assert time.monotonic() - begun < 1 * SLOW


def test_latency_by_length_grows_and_has_its_fit(start):
    one = start("--workers", 1)
    for length in (16, 64, 128, 256, 512, 1024):
        for n in range(3):
            assert one.post("/v1/attention", body_of(length, 8, n, weights=False, timeout_ms=60000)).status == 200
    entries = one.get("/v1/latency").json["data"]
    entry = next(e for e in entries if e["operation"] == "attention")
    assert entry["model"] is None and entry["heads"] == 1 and entry["width"] == 8
    lengths = {x["length"]: x for x in entry["lengths"]}
    assert set(lengths) == {16, 64, 128, 256, 512, 1024} and all(x["count"] == 3 for x in lengths.values())
    for x in lengths.values():
        assert 0 < x["compute"]["p50"] <= x["compute"]["p90"] <= x["compute"]["p99"] and x["total"]["p50"] > 0
    assert lengths[1024]["compute"]["p50"] > lengths[128]["compute"]["p50"]
    assert entry["fit"]["from"] == 16 and entry["fit"]["to"] == 1024 and math.isfinite(entry["fit"]["exponent"])


def test_log_lines_are_one_event_each_and_cannot_be_forged(start):
    one = start("--log-level", "debug", "--log-format", "json")
    one.attend(headers={"traceparent": 'x" event=forged'}, query=[[1]])
    import json
    one.stop()
    for line in one.log[:-1]:
        assert isinstance(json.loads(line), dict), line


def test_concurrent_scrapes_and_requests_agree(start):
    one = start("--workers", 2)
    stop = threading.Event()

    def scrape():
        while not stop.is_set():
            assert one.get("/metrics").status == 200

    thread = threading.Thread(target=scrape)
    thread.start()
    for _ in range(5):
        assert {r.status for r in together(one, [body_of(5, 4, n) for n in range(20)])} == {200}
    stop.set()
    thread.join()
    assert one.metric("attnd_requests_total") == 100
