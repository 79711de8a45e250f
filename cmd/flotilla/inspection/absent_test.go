package inspection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a command says to do next works when it is pasted into a shell: it looks
// where the command did.
func TestHintsForWhatIsAbsentNameTheNamespace(t *testing.T) {
	answers := map[string]string{}
	for _, at := range []string{"", "east:", "west:"} {
		answers[at+"/api/v1/namespaces/shop"] = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop"}}`
		answers[at+"/api/v1/namespaces/default"] = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default"}}`
		answers[at+"/api"] = `{"kind":"APIVersions","versions":["v1"]}`
		answers[at+"/apis"] = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
		answers[at+"/api/v1"] = `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","singularName":"configmap","kind":"ConfigMap","namespaced":true,"verbs":["get","list"],"shortNames":["cm"]},
			{"name":"namespaces","singularName":"namespace","kind":"Namespace","namespaced":false,"verbs":["get","list"],"shortNames":["ns"]},
			{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true,"verbs":["get","list"]}]}`
	}
	answers["/apis/cluster.karmada.io/v1alpha1"] = `{"kind":"APIResourceList","groupVersion":"cluster.karmada.io/v1alpha1","resources":[
		{"name":"clusters","singularName":"cluster","kind":"Cluster","namespaced":false,"verbs":["get","list"]}]}`
	answers["/apis"] = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"cluster.karmada.io","versions":[{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}],
		"preferredVersion":{"groupVersion":"cluster.karmada.io/v1alpha1","version":"v1alpha1"}}]}`
	answers["/apis/cluster.karmada.io/v1alpha1/clusters"] = `{"kind":"ClusterList","apiVersion":"cluster.karmada.io/v1alpha1","items":[{"metadata":{"name":"east"}},{"metadata":{"name":"west"}}]}`
	answers["/api/v1/namespaces/shop/configmaps/texts"] = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"texts","namespace":"shop"}}`
	cases := map[string]struct{ line, want string }{
		"on the control plane":                     {"get cm gone -n shop", "error: configmaps gone not found: flotilla get configmaps -n shop -s all lists what there is, on the control plane and in the clusters; -C names one to ask\n"},
		"in a member":                              {"get cm gone -n shop -C east", "error: configmaps gone not found: flotilla get configmaps -n shop -C east lists what there is\n"},
		"in all members":                           {"get cm gone -n shop -s members", "error: configmaps gone not found in any of 2 clusters (east, west): flotilla get configmaps -n shop -s members lists what there is\n"},
		"in members that are named":                {"get cm gone -n shop -C west,east", "error: configmaps gone not found in any of 2 clusters (east, west): flotilla get configmaps -n shop -C west,east lists what there is\n"},
		"everywhere":                               {"get cm gone -s all", "error: configmaps gone not found on the control plane, nor in any of 2 clusters (east, west): flotilla get configmaps -s all lists what there is\n"},
		"on the control plane and in one member":   {"get cm gone -n shop -s all -C east", "error: configmaps gone not found on the control plane, nor in cluster east: flotilla get configmaps -n shop -s all -C east lists what there is\n"},
		"a namespace, in all members":              {"get ns gone -n shop -s members", "error: namespaces gone not found in any of 2 clusters (east, west): flotilla get namespaces -s members lists what there is\n"},
		"when its logs are wanted":                 {"logs gone -n shop -C east", "error: pods gone not found: flotilla get pods -n shop -C east lists what there is\n"},
		"where all clusters are looked in":         {"logs gone -n shop", "error: no cluster has gone in namespace shop: flotilla get pods -n shop -s members lists what there is\n"},
		"a kind that is looked for in all":         {"logs cm/gone -n shop", "error: no cluster has cm/gone in namespace shop: flotilla get cm -n shop -s members lists what there is\n"},
		"what the control plane alone has":         {"port-forward cm/texts 80 -n shop", "error: cm/texts in namespace shop is on the control plane, and in no cluster: flotilla explain cm/texts -n shop says why\n"},
		"the namespace itself is in none":          {"get cm gone -n typo", "error: namespaces typo not found: flotilla get namespaces lists what there is\n"},
		"no namespace was named: it is any user's": {"get cm gone", "error: configmaps gone not found: flotilla get configmaps -s all lists what there is, on the control plane and in the clusters; -C names one to ask\n"},
	}
	address := stub(t, answers)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ask(t, address, tc.line)
			if diff := cmp.Diff(answer{Code: 1, Err: tc.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAbsentWhereSomeDoNotKnowTheKind: a cluster that does not know a kind has no object of
// it, either, and nothing is passed over without a word.
func TestAbsentWhereSomeDoNotKnowTheKind(t *testing.T) {
	answers := map[string]string{}
	for at, resources := range map[string]string{
		"":      "",
		"east:": `{"name":"configmaps","singularName":"configmap","kind":"ConfigMap","namespaced":true,"verbs":["get","list"]},`,
		"west:": "",
	} {
		answers[at+"/api/v1/namespaces/shop"] = `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop"}}`
		answers[at+"/api"] = `{"kind":"APIVersions","versions":["v1"]}`
		answers[at+"/apis"] = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
		answers[at+"/api/v1"] = `{"kind":"APIResourceList","groupVersion":"v1","resources":[` + resources +
			`{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true,"verbs":["get","list"]}]}`
	}
	answers["east:/api/v1/namespaces/shop/configmaps/texts"] = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"texts","namespace":"shop"}}`
	address := stub(t, answers)
	for name, tc := range map[string]struct {
		line string
		want answer
	}{
		"one that knows it does not have it": {"get configmaps gone -n shop -C east,west", answer{Code: 1, Err: "error: configmaps gone not found in any of 2 clusters (east, west): flotilla get configmaps -n shop -C east,west lists what there is\n"}},
		"one that knows it has it":           {"get configmaps texts -n shop -C east,west -o name", answer{Out: "configmap/texts\n"}},
		"all of them, watched":               {"get configmaps gone -n shop -C east,west -w", answer{Code: 1, Err: "error: configmaps gone not found in any of 2 clusters (east, west): flotilla get configmaps -n shop -C east,west lists what there is\n"}},
		"it is no fault":                     {"get configmaps gone -n shop -C east,west --ignore-not-found", answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ask(t, address, tc.line)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
