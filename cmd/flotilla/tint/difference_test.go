package tint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDifference: what goes and what comes is colored, in differences alone, and nothing else changes.
func TestDifference(t *testing.T) {
	for name, tc := range map[string]struct{ line, want string }{
		"what goes":         {"    - image: a", margin + red + "- image: a" + plain},
		"what comes":        {"    + image: b", margin + green + "+ image: b" + plain},
		"where it is":       {"    @@ -1 +1 @@", margin + cyan + "@@ -1 +1 @@" + plain},
		"a field":           {"    ! /a: 1 → 2", margin + yellow + "! /a: 1 → 2" + plain},
		"what stays":        {"      ready: True", "      ready: True"},
		"a row of no table": {"  - image: a", "  - image: a"},
		"a section":         {"UPDATED", bold + "UPDATED" + plain},
		"nothing":           {"    ", "    "},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, differing(tc.line)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var out bytes.Buffer
	if Difference(&out) != &out {
		t.Error("a buffer is colored")
	}
	const text = "UPDATED\n    - a\n    + b\n\nno end"
	if n, err := (comparer{&out}).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	codes := strings.NewReplacer(red, "", green, "", yellow, "", bold, "", cyan, "", plain, "")
	if diff := cmp.Diff(text, codes.Replace(out.String())); diff != "" {
		t.Errorf("the text has changed (-want +got):\n%s", diff)
	}
}
