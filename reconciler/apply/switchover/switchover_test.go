package switchover_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestNeeded(t *testing.T) {
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	override := policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ResourceKindOverridePolicy)
	change := func(gvk schema.GroupVersionKind, action applier.Action) applier.Change {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(gvk)
		return applier.Change{Desired: obj, Action: action}
	}
	gone := func(gvk schema.GroupVersionKind) inventory.Entry {
		return inventory.Entry{ID: inventory.ID{Name: "gone", GroupKind: gvk.GroupKind()}, Version: gvk.Version}
	}
	for name, tc := range map[string]struct {
		changes []applier.Change
		deleted []inventory.Entry
		want    bool
	}{
		"nothing changes":                             {changes: []applier.Change{change(configMap, applier.Unchanged), change(override, applier.Unchanged)}},
		"templates alone change and go":               {changes: []applier.Change{change(configMap, applier.Configured)}, deleted: []inventory.Entry{gone(configMap)}},
		"one override changes":                        {changes: []applier.Change{change(override, applier.Configured), change(configMap, applier.Unchanged)}},
		"one override goes":                           {changes: []applier.Change{change(configMap, applier.Unchanged)}, deleted: []inventory.Entry{gone(override)}},
		"a template and an override change":           {changes: []applier.Change{change(configMap, applier.Configured), change(override, applier.Created)}, want: true},
		"a template changes and an override goes":     {changes: []applier.Change{change(configMap, applier.Configured)}, deleted: []inventory.Entry{gone(override)}, want: true},
		"an override changes and a template goes":     {changes: []applier.Change{change(override, applier.Configured)}, deleted: []inventory.Entry{gone(configMap)}, want: true},
		"a template and an override go":               {changes: []applier.Change{change(configMap, applier.Unchanged)}, deleted: []inventory.Entry{gone(configMap), gone(override)}, want: true},
		"two overrides go, which may touch one thing": {deleted: []inventory.Entry{gone(override), gone(override)}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := switchover.Needed(tc.changes, tc.deleted); got != tc.want {
				t.Errorf("needed: %v, want %v", got, tc.want)
			}
		})
	}
}
