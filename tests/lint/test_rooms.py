"""Layers and rooms: which header may stand where (doc/ARCHITECTURE.md)."""
from fnmatch import fnmatch

import c_text

ROOMS = {  # header: the files that may include it; * crosses folders
    "microhttpd.h": ["server/http/*"],
    "uv.h": ["server/server.[ch]", "server/http/*", "server/pipeline/*"],
    "cblas.h": ["lib/kernels_blas*"],
    "jansson.h": ["server/codec/*", "server/text/*", "server/http/*admin*", "server/observe/*latency*", "lib/safetensors*",
                  "lib/model*"],
    "immintrin.h": ["lib/kernels_*", "server/codec/numbers*"],
    "ini.h": ["server/options*"],
    "systemd/sd-daemon.h": ["server/notify.c"],
    "utf8proc.h": ["server/text/unicode.c"],
    "pcre2.h": ["server/text/pattern.c"],
    "zlib.h": ["server/codec/inflate.c", "server/codec/deflate.c"],
}
# Lower layers do not know the higher ones: a folder may include from itself and from those listed.
LAYERS = {
    "server/observe": ["observe"],
    "server/codec": ["codec", "observe"],
    "server/text": ["text", "codec", "observe"],
    "server/pipeline": ["pipeline", "text", "codec", "observe"],
    "server/http": ["http", "pipeline", "text", "codec", "observe"],
}
LIB_MUST_NOT = ["microhttpd.h", "uv.h", "pthread.h", "threads.h", "ini.h"]


def own_headers(folder):
    return {path.rsplit("/", 1)[-1] for path in c_text.files(folder, suffixes=(".h",))}


def test_each_foreign_header_stays_in_its_room():
    outside = [f"{path} includes {header}" for path in c_text.files("lib", "server") for header in c_text.includes(path)
               if header in ROOMS and not any(fnmatch(path, room) for room in ROOMS[header])]
    assert not outside, "\n".join(outside)


def test_the_server_sees_the_library_through_its_one_public_header():
    internal = own_headers("lib") - own_headers("server") - {"attn.h"}
    seen = [f"{path} includes {header}" for path in c_text.files("server") for header in c_text.includes(path)
            if header.rsplit("/", 1)[-1] in internal]
    assert not seen, "\n".join(seen)


def test_the_library_knows_neither_server_nor_threads_nor_network():
    above = own_headers("server") - own_headers("lib")
    seen = [f"{path} includes {header}" for path in c_text.files("lib") for header in c_text.includes(path)
            if header in LIB_MUST_NOT or header.rsplit("/", 1)[-1] in above]
    assert not seen, "\n".join(seen)


def test_a_folder_of_the_server_includes_only_from_its_own_layer_and_those_below():
    seen = []
    for folder, allowed in LAYERS.items():
        for path in c_text.files(folder):
            for header in c_text.includes(path):
                room = header.split("/")[0] if "/" in header else None
                if room in {"http", "pipeline", "codec", "observe", "text"} and room not in allowed:
                    seen.append(f"{path} includes {header}")
    assert not seen, "\n".join(seen)


def test_a_source_file_includes_its_own_header_first():
    wrong = []
    for path in c_text.files("lib", "server", suffixes=(".c",)):
        header = path.removesuffix(".c") + ".h"
        if (c_text.ROOT / header).exists():
            first = c_text.includes(path)[0]
            if not header.endswith("/" + first) and header != first:
                wrong.append(f"{path} begins with {first}")
    assert not wrong, "\n".join(wrong)
