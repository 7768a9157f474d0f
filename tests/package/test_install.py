"""What `make install` puts in place, that it can be used, and that uninstall takes it away again."""
import os
import re
import shutil
import subprocess

import c_text
import pytest
from daemon import BINARY, ROOT, Daemon

BUILD = os.path.relpath(os.path.dirname(BINARY), ROOT)
VERSION = (ROOT / "VERSION").read_text().strip()
SONAME = "libattn.so." + VERSION.split(".")[0]
CC = os.environ.get("CC", "cc")
CXX = next(filter(shutil.which, ("c++", "g++", "clang++")), None)
WEIGHTS = [.176179, .268531, .207091, .348199, .116131, .269791, .160458, .453621,
           .087223, .262751, .133715, .516311, .151182, .270862, .188270, .389686]


def run(*command, **settings):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make(*words, **folders):
    """Output of make with the build that is under test."""
    return run("make", "-s", f"BUILD={BUILD}", *words, *(f"{name}={value}" for name, value in folders.items()), cwd=ROOT)


def tree(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()}


def folders(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir()}


def names(pattern):
    return [path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Installed for a package: below DESTDIR, as if it were at /usr."""
    root = tmp_path_factory.mktemp("root")
    make("install", PREFIX="/usr", DESTDIR=root)
    return root


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """Installed where it stays."""
    root = tmp_path_factory.mktemp("prefix")
    make("install", PREFIX=root)
    return root


def test_what_is_installed_is_what_should_be(installed):
    files = {"usr/bin/attnd", "etc/attnd/attnd.conf", "usr/include/attn.h", "usr/lib/libattn.a", "usr/lib/libattn.so",
             f"usr/lib/{SONAME}", f"usr/lib/libattn.so.{VERSION}", "usr/lib/pkgconfig/attn.pc",
             "usr/share/bash-completion/completions/attnd", "usr/share/man/man3/libattn.3",
             "usr/share/man/man5/attnd.conf.5", "usr/share/man/man8/attnd.8"}
    for unit in ["systemd/attnd.service", *names("systemd/attnd.socket")]:
        files.add(unit.replace("systemd/", "usr/lib/systemd/system/"))
    for model in [path for name in ("config.json", "tokenizer.json", "README.md", "*.safetensors")
                  for path in names(f"config/models/*/{name}")]:
        files.add(model.replace("config/models/", "usr/share/attnd/models/"))
    for document in ["README.md", "CHANGELOG.md", "LICENSE", *names("doc/*.md"), *names("doc/*.yaml")]:
        files.add("usr/share/doc/attnd/" + os.path.basename(document))
    assert tree(installed) == files
    assert all((installed / path).stat().st_mode & 0o777 == (0o755 if path == "usr/bin/attnd" else 0o644) for path in files)


def test_the_installed_unit_names_the_installed_program_and_configuration(installed):
    unit = (installed / "usr/lib/systemd/system/attnd.service").read_text()
    assert "ExecStart=/usr/bin/attnd --config /etc/attnd/attnd.conf\n" in unit
    assert not re.search(r"@\w+@", unit)


def test_the_installed_configuration_is_accepted(installed):
    run(installed / "usr/bin/attnd", "--config", installed / "etc/attnd/attnd.conf", "--check-config")


def test_the_installed_program_serves_the_installed_models(installed, monkeypatch):
    monkeypatch.setattr("daemon.BINARY", str(installed / "usr/bin/attnd"))
    with Daemon() as running:
        assert [entry["id"] for entry in running.get("/v1/models").json["data"]] == ["alice", "english-french", "tiny-mha"]


def test_every_text_names_the_folders_that_were_chosen(tmp_path):
    chosen = {"PREFIX": "/opt/attnd", "bindir": "/opt/attnd/sbin", "libdir": "/opt/attnd/lib64", "mandir": "/man",
              "sysconfdir": "/conf", "modeldir": "/srv/models", "unitdir": "/units", "docdir": "/doc"}
    make("install", DESTDIR=tmp_path, **chosen)
    assert {"opt/attnd/sbin/attnd", f"opt/attnd/lib64/{SONAME}", "man/man8/attnd.8", "conf/attnd/attnd.conf",
            "srv/models/tiny-mha/config.json", "units/attnd.service", "doc/README.md"} <= tree(tmp_path)
    unit = (tmp_path / "units/attnd.service").read_text()
    assert "ExecStart=/opt/attnd/sbin/attnd --config /conf/attnd/attnd.conf\n" in unit
    page = (tmp_path / "man/man8/attnd.8").read_text()
    assert "\n.I /conf/attnd/attnd.conf\n" in page and "\n.I /srv/models\n" in page
    assert "\n#models = /srv/models\n" in (tmp_path / "conf/attnd/attnd.conf").read_text()
    description = (tmp_path / "opt/attnd/lib64/pkgconfig/attn.pc").read_text()
    assert "prefix=/opt/attnd\nlibdir=${prefix}/lib64\nincludedir=${prefix}/include\n" in description
    make("uninstall", DESTDIR=tmp_path, **chosen)
    assert tree(tmp_path) == set()


# ---- the library

def pkg_config(prefix, *words):
    return run("pkg-config", *words, "attn", env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()


def example():
    """The program that libattn(3) shows."""
    page = (ROOT / "doc/libattn.3").read_text()
    return re.search(r"(?s)\.EX\n(.*?)\.EE", page)[1].replace(r"\e", "\\")


@pytest.mark.parametrize("kind", ["shared", "archive", "static"])
def test_the_program_of_the_manual_prints_the_textbooks_weights(prefix, tmp_path, kind):
    flags = pkg_config(prefix, "--cflags", "--libs", *([] if kind == "shared" else ["--static"]))
    if kind == "archive":  # libattn alone is linked in
        flags = [flag.replace("-lattn", "-l:libattn.a") for flag in flags]
    (tmp_path / "program.c").write_text(example())
    run(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", *(["-static"] if kind == "static" else []), "-o",
        tmp_path / "program", tmp_path / "program.c", *flags)
    where = {"LD_LIBRARY_PATH": str(prefix / "lib")} if kind == "shared" else {}
    printed = run(tmp_path / "program", env={**os.environ, **where})
    assert [float(text) for text in printed.split()] == pytest.approx(WEIGHTS, abs=2e-6, rel=0)


@pytest.mark.skipif(CXX is None, reason="no C++ compiler is installed")
def test_the_header_is_valid_in_cplusplus_and_its_functions_link(prefix, tmp_path):
    (tmp_path / "program.cc").write_text(
        "#include <attn.h>\nint main() { return attn_status_text(ATTN_OK) == nullptr; }\n")
    done = subprocess.run([CXX, "-x", "c++", "-", "-o", os.devnull], input="#include <cstddef>\nint main() {}\n", text=True,
                          capture_output=True, timeout=60)
    if done.returncode != 0:
        pytest.skip(f"{CXX} has no C++ library")
    run(CXX, "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "program", tmp_path / "program.cc",
        *pkg_config(prefix, "--cflags", "--libs"))
    run(tmp_path / "program", env={**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")})


def test_the_library_exports_the_functions_of_its_header_and_nothing_else(prefix):
    exported = {line.split()[-1] for line in
                run("nm", "-D", "--defined-only", prefix / f"lib/libattn.so.{VERSION}").splitlines()}
    declarations = re.sub(r"(?m)^typedef .*$", "", c_text.code("lib/attn.h"))
    declared = set(re.findall(r"\b(attn_\w+)\(", declarations))
    assert len(declared) > 30
    assert exported == declared


def test_every_global_name_of_the_archive_is_the_librarys_own(prefix):
    listed = run("nm", "-g", "--defined-only", prefix / "lib/libattn.a").splitlines()
    names = {line.split()[-1] for line in listed if re.match(r"[0-9a-f]+ [A-Z] ", line)}
    assert len(names) > 30
    assert not [name for name in names if not name.startswith("attn_")]


def test_the_shared_library_is_known_by_the_first_number_of_its_version(prefix):
    assert os.readlink(prefix / f"lib/{SONAME}") == os.readlink(prefix / "lib/libattn.so") == f"libattn.so.{VERSION}"
    assert f"Library soname: [{SONAME}]" in run("readelf", "-d", prefix / "lib/libattn.so", env={**os.environ, "LC_ALL": "C"})
    assert run("pkg-config", "--modversion", str(prefix / "lib/pkgconfig/attn.pc")).strip() == VERSION


# ---- the builder's choices

@pytest.mark.parametrize("given", ["as words", "in the environment"])
def test_the_builders_compiler_and_flags_are_used(given):
    choices = {"CFLAGS": "-O1 -DBY_CFLAGS", "CPPFLAGS": "-DBY_CPPFLAGS", "LDFLAGS": "-Wl,--by-ldflags", "CC": "chosen-cc"}
    words = [f"{name}={value}" for name, value in choices.items()] if given == "as words" else []
    commands = run("make", "-n", "-B", f"BUILD={BUILD}", *words, "all", cwd=ROOT, env={**os.environ, **choices})
    compiled = [line for line in commands.splitlines() if " -c -o " in line]
    linked = [line for line in commands.splitlines() if line.startswith("chosen-cc") and line not in compiled]
    assert len(compiled) > 50 and len(linked) == 2
    assert all(line.startswith("chosen-cc ") and "-O1 -DBY_CFLAGS" in line and "-DBY_CPPFLAGS" in line and " -O2" not in line
               for line in compiled)
    assert all("-O1 -DBY_CFLAGS" in line and "-Wl,--by-ldflags" in line for line in linked)


# ---- uninstalling

def test_uninstall_removes_what_was_installed_and_no_more(tmp_path):
    chosen = {"PREFIX": "/opt", "DESTDIR": tmp_path}
    foreign = {"opt/bin/other", "opt/share/man/man8/other.8", "opt/share/attnd/models/mine/config.json"}
    make("install", **chosen)
    for path in foreign:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    make("uninstall", **chosen)
    assert tree(tmp_path) == foreign
    assert {path for path in folders(tmp_path) if "attnd" in path} == {"opt/share/attnd", "opt/share/attnd/models",
                                                                       "opt/share/attnd/models/mine"}
    assert make("uninstall", **chosen) == ""


def test_a_configuration_that_is_there_is_kept_by_both_and_said_to_be(tmp_path):
    configuration = tmp_path / "opt/etc/attnd/attnd.conf"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("; mine\n")
    assert f"kept as it is: {configuration}" in make("install", PREFIX="/opt", DESTDIR=tmp_path)
    assert f"kept, since it was edited: {configuration}" in make("uninstall", PREFIX="/opt", DESTDIR=tmp_path)
    assert tree(tmp_path) == {"opt/etc/attnd/attnd.conf"}
    assert configuration.read_text() == "; mine\n"
