package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	summary := func(name string, fill func(*report)) string {
		r := &report{dir: dir}
		fill(r)
		path := filepath.Join(dir, name)
		if err := r.write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := summary("before.json", func(r *report) {
		r.atMost("1", "writes", 8, "writes", 6)
		r.atMost("3", "conflicts", 0, "conflicts", 0)
		r.atLeast("7", "decisions", 1200, "decisions/s", 1000)
		r.note("4", "dropped", 3, "ms")
	})
	after := summary("after.json", func(r *report) {
		r.atMost("1", "writes", 6, "writes", 6)
		r.atMost("3", "conflicts", 2, "conflicts", 0)
		r.atLeast("7", "decisions", 1200, "decisions/s", 1000)
		r.note("8", "added", 5, "ms")
	})
	var out strings.Builder
	if err := compare(&out, before, after); err != nil {
		t.Fatal(err)
	}
	const want = `ROW  WHAT       BEFORE            AFTER             CHANGE
1    writes     8 writes          6 writes          -25 %, meets its goal now
3    conflicts  0 conflicts       2 conflicts       from nothing, misses its goal now
7    decisions  1200 decisions/s  1200 decisions/s  =
8    added                        5 ms              new
4    dropped    3 ms                                gone
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("comparison (-want +got):\n%s", diff)
	}
	if err := compare(&out, before, filepath.Join(dir, "none.json")); err == nil {
		t.Error("a summary that is not there is compared")
	}
}
