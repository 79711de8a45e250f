package health_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestWaits: the text names the same object as long as that is waited for.
func TestWaits(t *testing.T) {
	of := func(names ...string) (out []health.Verdict) {
		for _, name := range names {
			out = append(out, health.Verdict{ID: inventory.ID{Namespace: "shop", Name: name, GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}})
		}
		return out
	}
	after := func(all []health.Verdict, names ...string) []health.Verdict {
		for i := range all {
			all[i].State, all[i].Follows = rollup.Progressing, slices.Contains(names, all[i].ID.Name)
		}
		pending, _, _ := health.Split(all)
		return pending
	}
	uncarried := func(all []health.Verdict, kinds ...string) []health.Verdict {
		for _, kind := range kinds {
			all = append(all, health.Verdict{ID: inventory.ID{Namespace: "shop", Name: "data", GroupKind: schema.GroupKind{Kind: kind}}, Reason: health.NothingRuns})
		}
		return all
	}
	lost := of("web", "worker")
	for i := range lost {
		lost[i].Reason = health.NothingRuns
	}
	for name, tc := range map[string]struct {
		pending []health.Verdict
		last    string
		want    string
	}{
		"at first":                      {of("db", "web"), "Running", "; waits for Deployment/shop/db"},
		"it was named before":           {of("db", "web"), "Running; waits for Deployment/shop/web", "; waits for Deployment/shop/web"},
		"it was named before something": {of("db", "web"), "Running; waits for Deployment/shop/web; what left stays", "; waits for Deployment/shop/web"},
		"what was named is healthy":     {of("db"), "Running; waits for Deployment/shop/web", "; waits for Deployment/shop/db"},
		"the first waits for the last":  {after(of("db", "web"), "db"), "", "; waits for Deployment/shop/web"},
		"what was named waits":          {after(of("db", "web"), "db"), "Running; waits for Deployment/shop/db", "; waits for Deployment/shop/web"},
		"all wait for others":           {after(of("db", "web"), "db", "web"), "Running; waits for Deployment/shop/web", "; waits for Deployment/shop/web"},
		"no policy carries a claim":     {uncarried(of("db"), "PersistentVolumeClaim"), "Running; waits for Deployment/shop/db", "; waits for PersistentVolumeClaim/shop/data, which no policy carries, so that no cluster has it"},
		"nor workloads":                 {slices.Concat(uncarried(nil, "PersistentVolumeClaim"), lost), "", "; waits for Deployment/shop/web, Deployment/shop/worker, PersistentVolumeClaim/shop/data, which no policy carries, so that no cluster has them"},
		"nor many more":                 {slices.Concat(uncarried(nil, "PersistentVolumeClaim"), lost, lost), "", "; waits for Deployment/shop/web, Deployment/shop/worker, Deployment/shop/web and 2 more, which no policy carries, so that no cluster has them"},
		"a longer name was named":       {of("db", "web"), "Running; waits for Deployment/shop/web-2", "; waits for Deployment/shop/db"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := health.Waits(tc.pending, tc.last); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
