package annotation_test

import (
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/annotation"
)

func TestFaultOf(t *testing.T) {
	const lfs, rollback = "gitops.flotilla.io/lfs", "gitops.flotilla.io/rollback-protection"
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string // empty for nothing
	}{
		"there is none":              {},
		"values that mean something": {annotations: map[string]string{lfs: "true", rollback: "hold"}},
		"LFS is not asked for":       {annotations: map[string]string{lfs: "false"}},
		"empty values":               {annotations: map[string]string{lfs: "", rollback: ""}},
		"another value for LFS":      {annotations: map[string]string{lfs: "yes"}, want: `the annotation gitops.flotilla.io/lfs is "yes": make it "true" or "false"`},
		"a guard that is mistyped":   {annotations: map[string]string{rollback: "on"}, want: `the annotation gitops.flotilla.io/rollback-protection is "on": make it "hold", or remove it`},
		"in another case":            {annotations: map[string]string{rollback: "Hold"}, want: `the annotation gitops.flotilla.io/rollback-protection is "Hold": make it "hold", or remove it`},
	} {
		t.Run(name, func(t *testing.T) {
			var r sourcev1.GitRepository
			r.Annotations = tc.annotations
			got := ""
			if err := annotation.FaultOf(&r); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
