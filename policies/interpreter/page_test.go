package interpreter_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
)

var update = flag.Bool("update", false, "write the tables of the documentation")

// TestPage compares the table of the page for users, which lists the operations
// of each kind, with the rules.
func TestPage(t *testing.T) {
	const begin, end = "-update -->\n", "<!-- end of native -->"
	page := filepath.Join("..", "..", "docs", "spec", "interpreter.md")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	written, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s does not mark where the table of native rules is", page)
	}
	table := nativeTable()
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+table+end+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(written, table); diff != "" {
		t.Errorf("%s is out of date, run the test with -update (-written +known):\n%s", page, diff)
	}
}

// operations are the columns of the table.
var operations = []struct {
	name  string
	known func(kinds.Rules) bool
}{
	{"replicas", func(r kinds.Rules) bool { return r.Replicas != nil }},
	{"revise", func(r kinds.Rules) bool { return r.Revise != nil }},
	{"retain", func(r kinds.Rules) bool { return r.Retain != nil }},
	{"reflect status", func(r kinds.Rules) bool { return r.Reflect != nil }},
	{"aggregate status", func(r kinds.Rules) bool { return r.Aggregate != nil }},
	{"health", func(r kinds.Rules) bool { return r.Health != nil }},
	{"dependencies", func(r kinds.Rules) bool { return r.Dependencies != nil }},
}

func nativeTable() string {
	var out strings.Builder
	out.WriteString("| kind |")
	for _, o := range operations {
		fmt.Fprintf(&out, " %s |", o.name)
	}
	out.WriteString("\n| --- |" + strings.Repeat(" --- |", len(operations)) + "\n")
	var lines []string
	for gvk, rules := range native.Table() {
		line := fmt.Sprintf("| %s `%s` |", gvk.Kind, gvk.GroupVersion())
		for _, o := range operations {
			if o.known(rules) {
				line += " ● |"
			} else {
				line += " |"
			}
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return out.String() + strings.Join(lines, "")
}
