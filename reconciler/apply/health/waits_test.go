package health_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWaits: what is named stays the same as long as it is waited for.
func TestWaits(t *testing.T) {
	of := func(names ...string) (out []health.Verdict) {
		for _, name := range names {
			out = append(out, health.Verdict{ID: inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}})
		}
		return out
	}
	for name, tc := range map[string]struct {
		pending []health.Verdict
		said    string
		want    string
	}{
		"at first":                      {of("db", "web"), "Running", "; waits for Deployment/shop/db"},
		"it was named before":           {of("db", "web"), "Running; waits for Deployment/shop/web", "; waits for Deployment/shop/web"},
		"it was named before something": {of("db", "web"), "Running; waits for Deployment/shop/web; what left stays", "; waits for Deployment/shop/web"},
		"what was named is healthy":     {of("db"), "Running; waits for Deployment/shop/web", "; waits for Deployment/shop/db"},
		"a longer name was named":       {of("db", "web"), "Running; waits for Deployment/shop/web-2", "; waits for Deployment/shop/db"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := health.Waits(tc.pending, tc.said); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
