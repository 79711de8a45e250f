package inventory_test

import (
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestMoreThanIsNamed: objects that are not named are counted, and Kustomizations are named first, as what they applied
// is found by them.
func TestMoreThanIsNamed(t *testing.T) {
	var removed []inventory.ID
	for n := range 2500 {
		removed = append(removed, entry(fmt.Sprintf("shop_c%04d__ConfigMap", n), "v1").ID)
	}
	child := entry("team_child_kustomize.toolkit.fluxcd.io_Kustomization", "v1").ID
	removed = append(removed, child)
	for name, tc := range map[string]struct {
		removed []inventory.ID
		named   int
		beyond  int
	}{
		"none":                         {nil, 0, 0},
		"as many as are named":         {removed[:1000], 1000, 0},
		"one more":                     {removed[:1001], 1000, 1},
		"many, and a Kustomization":    {removed, 1001, 1500},
		"few are left of many in time": {removed[2400:], 101, 0},
	} {
		t.Run(name, func(t *testing.T) {
			status := kustomizev1.KustomizationStatus{History: meta.History{{Metadata: map[string]string{"revision": "1", gitopsv1alpha1.RemovedKey: "x,+7"}}}}
			inventory.RecordRemoved(&status, tc.removed, true)
			named, beyond := inventory.Removed(status), inventory.RemovedBeyond(status)
			if len(named) != tc.named || beyond != tc.beyond {
				t.Errorf("%d are named and %d more, want %d and %d", len(named), beyond, tc.named, tc.beyond)
			}
			if len(tc.removed) > 0 && tc.removed[len(tc.removed)-1] == child && (len(named) == 0 || named[0] != child) {
				t.Errorf("the Kustomization is not named first: %v", named[:1])
			}
			inventory.RecordRemoved(&status, nil, false)
			if again := inventory.RemovedBeyond(status); again != beyond {
				t.Errorf("%d more while nobody has looked, want %d", again, beyond)
			}
		})
	}
	for _, text := range []string{"+x", "+-3", "shop_a__ConfigMap", ""} {
		status := kustomizev1.KustomizationStatus{History: meta.History{{Metadata: map[string]string{gitopsv1alpha1.RemovedKey: text}}}}
		if got := inventory.RemovedBeyond(status); got != 0 {
			t.Errorf("%q: %d more, want none", text, got)
		}
	}
}

// TestWhatIsBeingDeletedIsRecorded: by name, with what keeps it, up to a number.
func TestWhatIsBeingDeletedIsRecorded(t *testing.T) {
	blocked := inventory.Terminating{ID: entry("shop_a__ConfigMap", "v1").ID, UID: "u", Keeps: "kept by its finalizers: example.com/hold"}
	hidden := inventory.Terminating{ID: entry("shop_key__Secret", "v1").ID, UID: "v", Nameless: true}
	status := kustomizev1.KustomizationStatus{History: meta.History{{Metadata: map[string]string{"revision": "2"}}, {Metadata: map[string]string{"revision": "1"}}}}
	got := func() []inventory.Terminating {
		found, beyond := inventory.TerminatingIn(status)
		if beyond != 0 {
			t.Errorf("%d more, want none", beyond)
		}
		return found
	}
	inventory.RecordTerminating(&status, []inventory.Terminating{blocked, hidden}, true)
	if diff := cmp.Diff([]inventory.Terminating{blocked, hidden}, got()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	inventory.RecordTerminating(&status, nil, false)
	if diff := cmp.Diff([]inventory.Terminating{blocked, hidden}, got()); diff != "" {
		t.Errorf("while nobody has looked (-want +got):\n%s", diff)
	}
	inventory.RecordTerminating(&status, nil, true)
	if diff := cmp.Diff(map[string]string{"revision": "2"}, status.History.Latest().Metadata); diff != "" {
		t.Errorf("once all is gone (-want +got):\n%s", diff)
	}

	var many []inventory.Terminating
	for n := range 1200 {
		many = append(many, inventory.Terminating{ID: entry(fmt.Sprintf("shop_c%04d__ConfigMap", n), "v1").ID, UID: "u"})
	}
	inventory.RecordTerminating(&status, append(many, hidden), true)
	named, beyond := inventory.TerminatingIn(status)
	if len(named) != 1000 || beyond != 201 || named[1].ID != hidden.ID {
		t.Errorf("%d are named and %d more, the second %v; want 1000 and 201, and one of each kind first", len(named), beyond, named[1].ID)
	}
	for _, text := range []string{"x", `{"id":1}`, `[{"id":"oops"}]`, `[{"more":-4}]`} {
		status.History.Latest().Metadata[gitopsv1alpha1.TerminatingKey] = text
		if named, beyond := inventory.TerminatingIn(status); len(named)+beyond != 0 {
			t.Errorf("%s: %v and %d more, want none", text, named, beyond)
		}
	}
}
