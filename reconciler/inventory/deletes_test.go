package inventory

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
)

func TestWhyItKeepsWhatItApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		spec kustomizev1.KustomizationSpec
		want string
	}{
		"it prunes":                          {kustomizev1.KustomizationSpec{Prune: true}, ""},
		"it does not":                        {kustomizev1.KustomizationSpec{}, "true"},
		"it prunes, and is suspended":        {kustomizev1.KustomizationSpec{Prune: true, Suspend: true}, "suspended"},
		"it does not, and is suspended":      {kustomizev1.KustomizationSpec{Suspend: true}, "suspended"},
		"it prunes, and orphans in the end":  {kustomizev1.KustomizationSpec{Prune: true, DeletionPolicy: kustomizev1.DeletionPolicyOrphan}, "orphan"},
		"it does not, and deletes":           {kustomizev1.KustomizationSpec{DeletionPolicy: kustomizev1.DeletionPolicyDelete}, ""},
		"it waits, and is suspended":         {kustomizev1.KustomizationSpec{Suspend: true, DeletionPolicy: kustomizev1.DeletionPolicyWaitForTermination}, "suspended"},
		"it waits until what it has is gone": {kustomizev1.KustomizationSpec{DeletionPolicy: kustomizev1.DeletionPolicyWaitForTermination}, ""},
	} {
		ks := &kustomizev1.Kustomization{Spec: tc.spec}
		if got := Keeps(ks); got != tc.want || Deletes(ks) != (got == "") {
			t.Errorf("%s: keeps %q, want %q; deletes: %t", name, got, tc.want, Deletes(ks))
		}
	}
}
