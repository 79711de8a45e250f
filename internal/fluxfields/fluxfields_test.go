package fluxfields_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/api/scheme"
)

var update = flag.Bool("update", false, "write the table of docs/compatibility.md")

// paths are the fields that a row is about.
func (r row) paths() []string {
	if r.fields == "" {
		return []string{r.in}
	}
	var out []string
	for name := range strings.FieldsSeq(r.fields) {
		out = append(out, strings.TrimPrefix(r.in+"."+name, "."))
	}
	return out
}

// own returns which of the row's fields one is, or is below.
func (r row) own(path string) (string, bool) {
	paths := r.paths()
	i := slices.IndexFunc(paths, func(own string) bool { return covers(own, path) })
	if i < 0 {
		return "", false
	}
	return paths[i], true
}

// covers reports whether a field is another one, or below it.
func covers(own, path string) bool {
	rest, below := strings.CutPrefix(path, own)
	return own == "" || below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// of returns the row of a field, and which of the row's fields it is, or is below.
func (k kind) of(path string) (row, string) {
	for _, r := range k.rows {
		if own, ok := r.own(path); ok {
			return r, own
		}
	}
	return row{}, ""
}

// TestEachFieldIsDeclared: each field of the kinds that are served is declared, once, and nothing else is.
func TestEachFieldIsDeclared(t *testing.T) {
	kinds := served(t)
	var names []string
	for _, k := range declared {
		names = append(names, k.name)
		fields := leaves(kinds[k.name], "")
		for _, leaf := range fields {
			times := 0
			for _, r := range k.rows {
				if _, ok := r.own(leaf.path); ok {
					times++
				}
			}
			if times != 1 {
				t.Errorf("%s: spec.%s is declared %d times, want once: say whether it is used, refused or without effect", k.name, leaf.path, times)
			}
		}
		for _, r := range k.rows {
			for _, path := range r.paths() {
				is := func(l leaf) bool { return l.path == path }
				below := func(l leaf) bool { return covers(path, l.path) }
				if !slices.ContainsFunc(fields, below) || r.use == used && !slices.ContainsFunc(fields, is) {
					t.Errorf("%s: spec.%s is declared as %s, and is no field, or has fields of its own", k.name, path, r.use)
				}
			}
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(kinds)), names); diff != "" {
		t.Errorf("kinds (-served +declared):\n%s", diff)
	}
}

// TestWhatIsRefused: of objects that set one field, each with a value that it may have, the loops refuse
// those that are declared as refused, name the field, and refuse no others.
func TestWhatIsRefused(t *testing.T) {
	kinds, specs := scheme.New(), served(t)
	for _, k := range declared {
		for _, leaf := range leaves(specs[k.name], "") {
			r, own := k.of(leaf.path)
			for _, value := range leaf.values(t, k.choose) {
				spec, _ := with(t, specs[k.name], "", leaf.path, value, k.choose).(map[string]any)
				valid(t, specs[k.name], spec)
				reported := ""
				if k.refusal != nil {
					reported = k.refusal(t, kinds, spec)
				}
				want := r.use == refused || slices.Contains(strings.Fields(r.refuses), fmt.Sprint(value))
				switch {
				case want && !strings.Contains(reported, "spec."+own):
					t.Errorf("%s with spec.%s: %v is declared as refused, and the loop says %q", k.name, leaf.path, value, reported)
				case !want && reported != "":
					t.Errorf("%s with spec.%s: %v is declared as %s, and is refused: %s", k.name, leaf.path, value, r.use, reported)
				}
			}
			for value := range strings.FieldsSeq(r.refuses) {
				if !slices.Contains(leaf.values(t, k.choose), any(value)) {
					t.Errorf("%s: spec.%s has no value %s", k.name, leaf.path, value)
				}
			}
		}
	}
}

// TestWhatIsRead: fields that are used are read by the loop of their kind, and those without effect by none.
func TestWhatIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles all loops")
	}
	code, specs := load(t), served(t)
	anywhere := code.reads("reconciler", "sources")
	for _, k := range declared {
		byLoop := code.reads(k.folders...)
		name, _, _ := strings.Cut(k.name, " ")
		for _, leaf := range leaves(specs[k.name], "") {
			fields, err := code.fields(k.pkg, name, "spec."+leaf.path)
			if err != nil {
				t.Error(err)
				continue
			}
			r, _ := k.of(leaf.path)
			switch missing := unread(fields, byLoop); {
			case r.use == used && missing != "":
				t.Errorf("%s: spec.%s is declared as used, and %s is not read in %v", k.name, leaf.path, missing, k.folders)
			case r.use == ignored && unread(fields, anywhere) == "":
				t.Errorf("%s: spec.%s is declared as without effect, and is read", k.name, leaf.path)
			}
		}
	}
}

// unread returns the first of the fields on the way to one that nobody reads; empty if all are read.
func unread(fields []string, read map[string]bool) string {
	i := slices.IndexFunc(fields, func(field string) bool { return !read[field] })
	if i < 0 {
		return ""
	}
	return fields[i]
}

// TestPage: the page for users has what is declared.
func TestPage(t *testing.T) {
	const begin, end = "fluxfields -update -->\n", "<!-- end of fields -->"
	page := filepath.Join("..", "..", "docs", "compatibility.md")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	written, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s does not mark where the table of fields is", page)
	}
	want := table()
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(written, want); diff != "" {
		t.Errorf("%s is out of date, run the test with -update (-written +declared):\n%s", page, diff)
	}
}

func table() string {
	var out strings.Builder
	out.WriteString("| kind | in | fields | are | |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range declared {
		name, _, _ := strings.Cut(k.name, " ")
		for _, r := range k.rows {
			fields := "all"
			if r.fields != "" {
				fields = quoted(r.fields)
			}
			in, about := strings.Trim("spec."+r.in, "."), r.why
			if r.refuses != "" {
				about = quoted(r.refuses) + " are refused: " + r.why
			}
			line := fmt.Sprintf("| %s | `%s` | %s | %s | %s", name, in, fields, r.use, about)
			out.WriteString(strings.TrimSpace(line) + " |\n")
		}
	}
	return out.String()
}

// quoted are words as a page has names.
func quoted(words string) string { return "`" + strings.Join(strings.Fields(words), "`, `") + "`" }
