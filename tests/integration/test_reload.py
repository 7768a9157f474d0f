"""SIGHUP: models and log settings change under traffic, nothing is lost, and what fails changes nothing."""
import json
import os
import shutil
import signal
import threading

import pytest
from load import Busy
from reference import write_torch_mha

ROW = [[0.5] * 16]


class Served:
    """A daemon over a directory of models and a file of settings that a test may change."""

    def __init__(self, start, tmp_path, *args, settings="log_level = info\n", **kwargs):
        self.models, self.file = tmp_path / "models", tmp_path / "attnd.conf"
        self.models.mkdir()
        self.add("first")
        self.file.write_text(settings)
        self.daemon = start("--config", self.file, "--models", self.models, *args, **kwargs)
        self.ended = 0

    def add(self, name, seed=1, width=16, heads=4):
        """A model appears whole or not at all, as a move within a file system does it."""
        made = self.models.parent / f"made-{name}"
        write_torch_mha(made, width, heads, seed)
        shutil.rmtree(self.models / name, ignore_errors=True)
        made.rename(self.models / name)

    def hang_up(self):
        self.daemon.signal(signal.SIGHUP)

    def reload(self, event="reloaded"):
        """Reloads and waits for the end of it."""
        before = self.count(event)
        self.hang_up()
        self.daemon.wait_until(lambda: self.count(event) > before, 20, event)

    def count(self, event):
        return sum(f"event={event} " in line + " " for line in self.daemon.log)

    def names(self):
        return [model["id"] for model in self.daemon.get("/v1/models").json["data"]]

    def ask(self, name, **fields):
        return self.daemon.post(f"/v1/models/{name}/attention", dict(query=ROW, **fields))


@pytest.fixture
def served(start, tmp_path):
    return Served(start, tmp_path, "--workers", 2)


def test_a_new_model_appears_and_a_removed_one_is_not_found(served):
    served.add("second", seed=2)
    assert served.ask("second").status == 404
    shutil.rmtree(served.models / "first")
    served.reload()
    assert served.names() == ["second"]
    assert served.ask("second").status == 200
    gone = served.ask("first")
    assert (gone.status, gone.json["code"]) == (404, "no-such-model")


def test_a_model_changes_its_weights_under_its_name(served):
    before = served.ask("first").json["context"]
    served.add("first", seed=7)
    assert served.ask("first").json["context"] == before
    served.reload()
    assert served.ask("first").json["context"] != before


def test_a_reload_under_traffic_loses_no_request(served):
    outcomes, stop = [], threading.Event()

    def client(path):
        while not stop.is_set():
            try:
                outcomes.append(served.daemon.post(path, dict(query=ROW)).status)
            except OSError as error:
                outcomes.append(repr(error))

    threads = [threading.Thread(target=client, args=(path,))
               for path in ("/v1/models/first/attention", "/v1/attention", "/v1/models/first/attention")]
    for thread in threads:
        thread.start()
    for round in range(10):
        served.add(f"more-{round}", seed=round)
        served.reload()
        seen = len(outcomes)
        served.daemon.wait_until(lambda: len(outcomes) > seen + 5, what="traffic")
    stop.set()
    for thread in threads:
        thread.join()
    assert set(outcomes) == {200}, set(outcomes)
    assert len(served.names()) == 11


def test_requests_in_flight_on_a_removed_model_are_answered(start, tmp_path):
    served = Served(start, tmp_path, "--workers", 1)
    expected = served.ask("first").json["context"]
    replies = []
    with Busy(served.daemon, length=4000) as busy:
        waiting = [threading.Thread(target=lambda: replies.append(served.ask("first"))) for _ in range(4)]
        for thread in waiting:
            thread.start()
        served.daemon.wait_until(lambda: served.daemon.metric("attnd_queue_depth") == 4, what="four waiting")
        shutil.rmtree(served.models / "first")
        served.reload()
        assert busy.thread.is_alive() and not replies
        assert served.ask("first").status == 404
        for thread in waiting:
            thread.join()
    assert [reply.status for reply in replies] == [200] * 4
    assert all(reply.json["context"] == expected for reply in replies)


@pytest.mark.parametrize("breakage", ["config.json", "model.safetensors", "name", "settings"])
def test_what_cannot_be_loaded_leaves_what_was_served_and_says_why(served, breakage):
    served.add("second", seed=2)
    if breakage == "name":
        (served.models / "bad name").mkdir()
    elif breakage == "settings":
        served.file.write_text("log_level = info\nmax_body = many\n")
    else:
        (served.models / "second" / breakage).write_bytes(b"\x03")
    served.reload("reload-failed")
    why = next(line for line in served.daemon.log if "event=reload-failed" in line)
    assert {"name": "bad name", "settings": "attnd.conf:2: max_body"}.get(breakage, "second") in why and "reason=" in why
    assert served.names() == ["first"] and served.ask("first").status == 200
    # Mended, it loads.
    shutil.rmtree(served.models / "bad name", ignore_errors=True)
    served.add("second", seed=2)
    served.file.write_text("")
    served.reload()
    assert served.names() == ["first", "second"]


def test_the_log_level_and_form_follow_the_file(served):
    assert served.ask("first").status == 200
    assert served.count("request") == 0
    served.file.write_text("log_level = debug\n")
    served.reload()
    assert served.ask("first").status == 200
    served.daemon.wait_until(lambda: served.count("request") >= 1, what="a request in the log")
    served.file.write_text("log_level = info\nlog_format = json\n")
    served.hang_up()
    served.daemon.wait_log(r'"event":"reloaded"')
    seen = len(served.daemon.log)
    assert served.ask("first").status == 200
    served.hang_up()
    served.daemon.wait_until(lambda: len(served.daemon.log) > seen, what="the next reload")
    lines = [json.loads(line) for line in served.daemon.log[seen:]]
    assert {line["event"] for line in lines} <= {"reloading", "reloaded"}


def test_a_flag_wins_over_the_file_on_reload_too(start, tmp_path):
    served = Served(start, tmp_path, "--log-level", "info")
    served.file.write_text("log_level = debug\n")
    served.reload()
    assert served.ask("first").status == 200
    assert served.count("request") == 0


def test_signals_while_one_load_runs_are_remembered_once(served):
    for seed in range(12):  # something that takes a while to load
        served.add(f"wide-{seed}", seed=seed, width=512, heads=8)
    for _ in range(20):
        served.hang_up()
    served.daemon.wait_log("event=reloaded", 30)
    served.daemon.wait_until(lambda: served.count("reloading") == served.count("reloaded"), 30, "the last reload")
    loads = served.count("reloaded")
    assert 1 <= loads <= 20
    assert len(served.names()) == 13
    served.reload()
    assert served.count("reloaded") == loads + 1


def test_memory_and_descriptors_do_not_grow_over_20_reloads(served):
    served.add("wide", width=512, heads=8)  # 4 MiB of weights
    for _ in range(3):
        served.reload()
    resident, descriptors = served.daemon.resident_bytes(), served.daemon.descriptors()
    for _ in range(20):
        served.reload()
        assert served.ask("first").status == 200
    grown = served.daemon.resident_bytes() - resident
    # A build with sanitizers keeps what was freed for a while.
    assert grown < (8 << 20) * (8 if os.environ.get("ATTND_NO_PRELOAD") else 1), f"{grown} bytes"
    served.daemon.wait_until(lambda: served.daemon.descriptors() <= descriptors, what="no descriptor left")


def test_sigterm_during_a_reload_still_drains(start, tmp_path):
    served = Served(start, tmp_path, "--workers", 1)
    for seed in range(6):
        served.add(f"wide-{seed}", seed=seed, width=512, heads=8)
    with Busy(served.daemon, length=2000) as busy:
        served.hang_up()
        served.hang_up()
        served.daemon.terminate()
    assert busy.reply.status == 200
    assert served.daemon.wait() == 0


def test_sighup_while_draining_reloads_nothing(start, tmp_path):
    served = Served(start, tmp_path, "--workers", 1)
    with Busy(served.daemon, length=3000) as busy:
        served.daemon.terminate()
        served.daemon.wait_log("event=draining")
        served.hang_up()
        assert served.daemon.get("/healthz").status == 503
    assert busy.reply.status == 200
    assert served.daemon.wait() == 0
    assert served.count("reloading") == 0


def test_health_answers_while_models_load(served):
    for seed in range(12):
        served.add(f"wide-{seed}", seed=seed, width=512, heads=8)
    served.hang_up()
    served.daemon.wait_log("event=reloading")
    while served.count("reloaded") == 0:
        assert served.daemon.get("/healthz").status == 200


def test_tokens_are_read_again(start, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("first\n")
    served = Served(start, tmp_path, "--tokens-file", tokens)
    served.add("one")

    def asks(token):
        return served.daemon.request("GET", "/v1/models", headers={"Authorization": f"Bearer {token}"}).status

    assert (asks("first"), asks("second")) == (200, 401)
    tokens.write_text("second\n")
    served.reload()
    assert (asks("first"), asks("second")) == (401, 200)
    tokens.write_text("")
    served.hang_up()
    served.daemon.wait_log("event=reload-failed")
    assert (asks("first"), asks("second")) == (401, 200)
