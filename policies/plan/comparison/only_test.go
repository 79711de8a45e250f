package comparison_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// TestOnly: what is about other clusters, and what others apply, is left out, and the counts are of the rest.
func TestOnly(t *testing.T) {
	base := fleet3 + by("apps", policyOn("east, west")) + by("apps", web) + by("other", allMaps) + by("other", config)
	head := fleet3 + by("apps", policyOn("west")) + by("apps", web2) + by("other", allMaps) + by("other", config2)
	c := compared(t, base, head)
	cases := map[string]struct {
		got  comparison.Comparison
		want string
		sum  comparison.Summary
	}{
		"one cluster": {c.Only([]string{"east"}), `place Deployment shop/web: east 2→- (placement changed)
deleted Deployment shop/web in east
updated ConfigMap shop/settings in east
  /data/size: large → small`, comparison.Summary{Deleted: 1, Updated: 1, Clusters: 1, Objects: 2}},
		"the cluster that is left": {c.Only([]string{"west", "mars"}), `! OneCluster: Deployment shop/web ran in 2 clusters, and will run in one in west
updated ConfigMap shop/settings in west
  /data/size: large → small
updated Deployment shop/web in west
  /spec/template/spec/containers/0/image: nginx:1 → nginx:2
pods of Deployment shop/web restart: 2 in west (its pod template changes: spec.containers.0.image)`, comparison.Summary{Updated: 2, Clusters: 1, Objects: 2, Restarts: 2}},
		"no cluster of the fleet": {c.Only([]string{"mars"}), "", comparison.Summary{}},
		"one Kustomization": {c.OfKustomization("flux/other"), `updated ConfigMap shop/settings in east,north,west
  /data/size: large → small`, comparison.Summary{Updated: 3, Clusters: 3, Objects: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, told(tc.got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.sum, tc.got.Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
