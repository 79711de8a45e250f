package dependency_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
)

// TestWhoseBindingItIs: a binding says who needs it, and whether it runs for anything
// but these.
func TestWhoseBindingItIs(t *testing.T) {
	type properties struct {
		Refs                     []dependency.Ref
		Tied, Governed, Attached bool
	}
	web := []dependency.Ref{{Namespace: "shop", Name: "web"}}
	cases := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   properties
	}{
		"needed by one":                {func(*workv1alpha2.ResourceBinding) {}, properties{Refs: web, Tied: true, Attached: true}},
		"needed, and carried besides":  {governed, properties{Refs: web, Tied: true, Governed: true}},
		"needed, and made by others":   {managed, properties{Refs: web, Tied: true, Governed: true}},
		"needed, and placed by itself": {func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = snapshot("", "z").Clusters }, properties{Refs: web, Tied: true, Governed: true}},
		"needed by several, in their order": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("z"), {Name: "wide"}, snapshot("web", "a")}
		}, properties{Refs: []dependency.Ref{{Namespace: "shop", Name: "z"}, {Name: "wide"}, web[0]}, Tied: true, Attached: true}},
		"only a label says that it is needed": {func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = nil }, properties{Refs: []dependency.Ref{}, Tied: true}},
		"needed by nobody":                    {alone, properties{Refs: []dependency.Ref{}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := attached(tc.change)
			got := properties{Refs: dependency.Refs(b), Tied: dependency.Tied(b), Governed: dependency.Governed(b), Attached: dependency.Attached(b)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the binding says (-want +got):\n%s", diff)
			}
		})
	}
}
