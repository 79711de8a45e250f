package situation

import (
	"strings"
	"testing"
)

// TestLongPaths: the table of all Kustomizations is as wide as the widest of them.
func TestLongPaths(t *testing.T) {
	f := Fleet{Kustomizations: []Kustomization{{Name: "app", Path: "./" + strings.Repeat("a", 5000)}}}
	var out strings.Builder
	if err := f.Text(&out, TextOptions{Wide: true}); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 1000 || !strings.Contains(out.String(), "./aaa") {
		t.Errorf("%d bytes of text", out.Len())
	}
}
