package repository

import (
	"strings"
	"testing"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/sources/git"
)

func TestAllowedToGo(t *testing.T) {
	for name, tc := range map[string]struct{ message, want string }{
		"a subject alone":          {"Flotilla-Allow-Delete: namespace/shop", ""},
		"none":                     {"Sell\n\nMore things.\n", ""},
		"one":                      {"Sell\n\nNo more things.\n\nFlotilla-Allow-Delete: namespace/shop\n", "namespace/shop"},
		"several":                  {"Sell\n\nSigned-off-by: A\nflotilla-allow-delete: a/b,c/d/e\nFlotilla-Allow-Delete:  f/g , ", "a/b, c/d/e, f/g"},
		"with the ends of Windows": {"Sell\r\n\r\nFlotilla-Allow-Delete: a/b\r\n", "a/b"},
		"in the text":              {"Sell\n\nFlotilla-Allow-Delete: a/b\n\nThe end.", ""},
		"what a terminal obeys":    {"Sell\n\nFlotilla-Allow-Delete: a/\x1b[2Jb", "a/ [2Jb"},
		"far too much":             {"Sell\n\nFlotilla-Allow-Delete: a/b," + strings.Repeat("x", mostAllowed), "a/b"},
	} {
		if got := allowedToGo(tc.message); got != tc.want {
			t.Errorf("%s: it names %q, want %q", name, got, tc.want)
		}
	}
	if got := about(&git.Tree{Message: "Sell\n\nFlotilla-Allow-Delete: a/b"}, "Sell")[gitopsv1alpha1.CommitAllowDeleteKey]; got != "a/b" {
		t.Errorf("of the commit %q is recorded, want %q", got, "a/b")
	}
}
