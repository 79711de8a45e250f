package applier

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

func TestTaintsOfTheControlPlaneStay(t *testing.T) {
	cluster := func(kind, metadata, spec string) *unstructured.Unstructured {
		out := &unstructured.Unstructured{}
		text := "{apiVersion: cluster.karmada.io/v1alpha1, kind: " + kind + ", metadata: {name: east, " + metadata + "}, spec: " + spec + "}"
		if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const own, notReady, stale = "{key: a, effect: NoSchedule}", "{key: cluster.karmada.io/not-ready, effect: NoSchedule, timeAdded: '2026-01-01T00:00:00Z'}", "{key: cluster.karmada.io/not-ready, effect: NoSchedule}"
	const noted, applied = "gitops.flotilla.io/taints: 'a:NoSchedule'", "[{manager: kustomize-controller, operation: Apply, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:taints': {}}}}]"
	cases := map[string]struct {
		kind, desired, observed, want string
		note                          string // on it
		before                        string // the metadata of what is there, but its name
	}{
		"it is ready":            {kind: "Cluster", desired: "{taints: [" + own + "]}", observed: "{taints: [" + own + "]}", want: "{taints: [" + own + "]}", note: "a:NoSchedule"},
		"it is not":              {kind: "Cluster", desired: "{taints: [" + own + "]}", observed: "{taints: [" + own + ", " + notReady + "]}", want: "{taints: [" + own + ", " + notReady + "]}", note: "a:NoSchedule"},
		"a taint of others goes": {kind: "Cluster", desired: "{taints: [" + own + "]}", observed: "{taints: [{key: b, effect: NoSchedule}, " + notReady + "]}", want: "{taints: [" + own + ", " + notReady + "]}", note: "a:NoSchedule"},
		"a taint of others stays, where Git's own are known": {
			kind: "Cluster", desired: "{taints: [" + own + "]}", observed: "{taints: [" + own + ", {key: network, effect: NoSchedule}]}", before: "annotations: {" + noted + "}",
			want: "{taints: [" + own + ", {key: network, effect: NoSchedule}]}", note: "a:NoSchedule",
		},
		"one of two that Git had goes": {
			kind: "Cluster", desired: "{taints: [{key: b, effect: NoSchedule}]}", observed: "{taints: [" + own + ", {key: b, effect: NoSchedule}]}", before: "annotations: {" + noted + "}",
			want: "{taints: [{key: b, effect: NoSchedule}]}", note: "b:NoSchedule",
		},
		"Git says it, too":                   {kind: "Cluster", desired: "{taints: [" + stale + "]}", observed: "{taints: [" + notReady + "]}", want: "{taints: [" + notReady + "]}"},
		"Git has none, and claims none":      {kind: "Cluster", desired: "{syncMode: Push}", observed: "{taints: [" + notReady + "]}", want: "{syncMode: Push}"},
		"Git wants none":                     {kind: "Cluster", desired: "{taints: []}", observed: "{taints: [" + own + ", " + notReady + "]}", want: "{taints: [" + notReady + "]}"},
		"Git has none any more":              {kind: "Cluster", desired: "{syncMode: Push}", observed: "{taints: [" + own + ", {key: a, effect: NoExecute}, " + notReady + "]}", before: "annotations: {" + noted + "}", want: "{syncMode: Push, taints: [{key: a, effect: NoExecute}, " + notReady + "]}"},
		"Git has none, and wrote the list":   {kind: "Cluster", desired: "{syncMode: Push}", observed: "{taints: [" + notReady + "]}", before: "managedFields: " + applied, want: "{syncMode: Push, taints: [" + notReady + "]}"},
		"another kind":                       {kind: "Other", desired: "{taints: [" + own + "]}", observed: "{taints: [" + notReady + "]}", want: "{taints: [" + own + "]}"},
		"what is there is none that is read": {kind: "Cluster", desired: "{taints: [" + own + "]}", observed: "{taints: 1}", want: "{taints: [" + own + "]}"},
		"it is yet to be made":               {kind: "Cluster", desired: "{taints: [" + own + "]}", want: "{taints: [" + own + "]}", note: "a:NoSchedule"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired, want := cluster(tc.kind, "", tc.desired), cluster(tc.kind, "", tc.want)
			var observed *unstructured.Unstructured
			if tc.observed != "" {
				observed = cluster(tc.kind, tc.before, tc.observed)
			}
			if tc.note != "" {
				want.SetAnnotations(map[string]string{gitopsv1alpha1.TaintsAnnotation: tc.note})
			}
			got := keepingTaints(desired, observed)
			if diff := cmp.Diff(want.Object, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(cluster(tc.kind, "", tc.desired).Object, desired.Object); diff != "" {
				t.Errorf("what was given is changed (-want +got):\n%s", diff)
			}
		})
	}
}
