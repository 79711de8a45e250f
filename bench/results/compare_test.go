package results

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	summary := func(name string, fill func(*Report)) string {
		r := &Report{Dir: dir}
		fill(r)
		path := filepath.Join(dir, name)
		if err := r.Write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := summary("before.json", func(r *Report) {
		r.AtMost("1", "writes", 8, "writes", 6)
		r.AtMost("3", "conflicts", 0, "conflicts", 0)
		r.AtLeast("7", "decisions", 1200, "decisions/s", 1000)
		r.Note("4", "dropped", 3, "ms")
	})
	after := summary("after.json", func(r *Report) {
		r.AtMost("1", "writes", 6, "writes", 6)
		r.AtMost("3", "conflicts", 2, "conflicts", 0)
		r.AtLeast("7", "decisions", 1200, "decisions/s", 1000)
		r.Note("8", "added", 5, "ms")
	})
	var out strings.Builder
	if err := Compare(&out, before, after); err != nil {
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
	if err := Compare(&out, before, filepath.Join(dir, "none.json")); err == nil {
		t.Error("a summary that is not there is compared")
	}
}
