"""Functions stay short and flat."""
from statistics import median

import c_text

LINES, LEVELS, MEDIAN = 70, 3, 20


def all_functions():
    return [f for path in c_text.files("lib", "server", suffixes=(".c",)) for f in c_text.functions(path)]


def test_no_function_is_longer_than_the_budget():
    long = [str(f) for f in all_functions() if f.lines > LINES]
    assert not long, "\n".join(long)


def test_no_function_nests_deeper_than_the_budget():
    deep = [str(f) for f in all_functions() if f.depth > LEVELS]
    assert not deep, "\n".join(deep)


def test_the_usual_function_is_short():
    found = all_functions()
    assert len(found) > 100
    assert median(f.lines for f in found) <= MEDIAN


def test_the_reader_of_functions_finds_what_is_there(tmp_path, monkeypatch):
    (tmp_path / "x.c").write_text("""
        /* { */ static const int table[] = {1, 2};
        #define BRACE {
        struct pair { int a; };
        int one(void) { return '{'; }
        static int two(int a,
                       int b)
        {
            if (a) {
                for (;;) {
                    a = "}"[0];
                }
            }
            return b;
        }
    """)
    monkeypatch.setattr(c_text, "ROOT", tmp_path)
    found = [(f.name, f.lines, f.depth) for f in c_text.functions("x.c")]
    assert found == [("one", 1, 0), ("two", 8, 2)]
