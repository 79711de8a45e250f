package inventory_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func TestWhatIsRemovedIsRecordedOnce(t *testing.T) {
	const key = gitopsv1alpha1.RemovedKey
	a, b := entry("shop_a__ConfigMap", "v1").ID, entry("shop_b_apps_Deployment", "v1").ID
	history := func(metadata ...map[string]string) meta.History {
		var out meta.History
		for _, m := range metadata {
			out = append(out, meta.Snapshot{Metadata: m})
		}
		return out
	}
	cases := map[string]struct {
		had     meta.History
		removed []inventory.ID
		looked  bool
		want    []string // of each outcome, the latest first
	}{
		"there is no outcome yet":       {nil, []inventory.ID{a}, true, nil},
		"what was found":                {history(nil, map[string]string{key: "x"}), []inventory.ID{a, b}, true, []string{"shop_a__ConfigMap,shop_b_apps_Deployment", ""}},
		"nothing is left":               {history(map[string]string{key: "x"}), nil, true, []string{""}},
		"nobody has looked":             {history(map[string]string{"revision": "2"}, map[string]string{key: "x"}, map[string]string{key: "y"}), nil, false, []string{"x", "", ""}},
		"nobody has looked and nothing": {history(nil), nil, false, []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := kustomizev1.KustomizationStatus{History: tc.had}
			inventory.RecordRemoved(&status, tc.removed, tc.looked)
			var got []string
			for _, outcome := range status.History {
				got = append(got, outcome.Metadata[key])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
		})
	}
	status := kustomizev1.KustomizationStatus{History: history(map[string]string{key: "shop_a__ConfigMap,oops,shop_b_apps_Deployment"})}
	if diff := cmp.Diff([]inventory.ID{a, b}, inventory.Removed(status)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}
