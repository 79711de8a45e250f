package kustomizations

import (
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

func TestUnsupportedPaths(t *testing.T) {
	for name, tc := range map[string]struct {
		length int
		want   string
	}{
		"the longest":                          {4096, ""},
		"one that nobody can read on a screen": {4097, "spec.path of more than 4096 bytes"},
	} {
		spec := kustomizev1.KustomizationSpec{Path: strings.Repeat("a", tc.length), SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository"}}
		if field, _ := Unsupported(spec); field != tc.want {
			t.Errorf("%s: %q is unsupported, want %q", name, field, tc.want)
		}
	}
}
