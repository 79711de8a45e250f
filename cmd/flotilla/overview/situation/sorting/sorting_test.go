package sorting_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/sorting"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestObjects: workloads come first, then names, with the numbers in them by value.
func TestObjects(t *testing.T) {
	of := func(group, kind, namespace, name string) inventory.ID {
		return inventory.ID{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespace: namespace, Name: name}
	}
	got := []inventory.ID{of("", "ConfigMap", "shop", "a"), of("apps", "Deployment", "shop", "web-10"), of("apps", "Deployment", "shop", "web-02"), of("apps", "Deployment", "shop", "web"), of("apps", "Deployment", "bank", "z")}
	sorting.Objects(got)
	want := []inventory.ID{of("apps", "Deployment", "bank", "z"), of("apps", "Deployment", "shop", "web"), of("apps", "Deployment", "shop", "web-02"), of("apps", "Deployment", "shop", "web-10"), of("", "ConfigMap", "shop", "a")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
