package applier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestTaintsOfTheControlPlaneStay(t *testing.T) {
	cluster := func(kind, spec string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		text := "{apiVersion: cluster.karmada.io/v1alpha1, kind: " + kind + ", metadata: {name: east}, spec: " + spec + "}"
		if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const own, notReady, stale = "{key: a, effect: NoSchedule}", "{key: cluster.karmada.io/not-ready, effect: NoSchedule, timeAdded: '2026-01-01T00:00:00Z'}", "{key: cluster.karmada.io/not-ready, effect: NoSchedule}"
	cases := map[string]struct{ kind, desired, observed, want string }{
		"it is ready":                        {"Cluster", "{taints: [" + own + "]}", "{taints: [" + own + "]}", "{taints: [" + own + "]}"},
		"it is not":                          {"Cluster", "{taints: [" + own + "]}", "{taints: [" + own + ", " + notReady + "]}", "{taints: [" + own + ", " + notReady + "]}"},
		"a taint of others goes":             {"Cluster", "{taints: [" + own + "]}", "{taints: [{key: b, effect: NoSchedule}, " + notReady + "]}", "{taints: [" + own + ", " + notReady + "]}"},
		"Git says it, too":                   {"Cluster", "{taints: [" + stale + "]}", "{taints: [" + notReady + "]}", "{taints: [" + notReady + "]}"},
		"Git has none, and claims none":      {"Cluster", "{syncMode: Push}", "{taints: [" + notReady + "]}", "{syncMode: Push}"},
		"Git wants none":                     {"Cluster", "{taints: []}", "{taints: [" + own + ", " + notReady + "]}", "{taints: [" + notReady + "]}"},
		"another kind":                       {"Other", "{taints: [" + own + "]}", "{taints: [" + notReady + "]}", "{taints: [" + own + "]}"},
		"what is there is none that is read": {"Cluster", "{taints: [" + own + "]}", "{taints: 1}", "{taints: [" + own + "]}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired := cluster(tc.kind, tc.desired)
			got := keepingTaints(desired, cluster(tc.kind, tc.observed))
			if diff := cmp.Diff(cluster(tc.kind, tc.want).Object, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(cluster(tc.kind, tc.desired).Object, desired.Object); diff != "" {
				t.Errorf("what was given is changed (-want +got):\n%s", diff)
			}
		})
	}
	if one := cluster("Cluster", "{taints: []}"); keepingTaints(one, nil) != one {
		t.Error("one that is yet to be made is another one")
	}
}
