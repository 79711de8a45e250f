package explain_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/explain"
)

const mistyped = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: shop, name: web, uid: u-p, generation: 2, labels: {propagationpolicy.karmada.io/permanent-id: p-web}}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [east, wst]}, clusterTolerations: [{key: edge, operator: Exists}]}
`

// TestMistypedClusterGolden checks that a mistyped cluster is shown to whoever
// asks about the workload or about its policy.
func TestMistypedClusterGolden(t *testing.T) {
	in := explain.Input{
		Now: noon, Template: template(t, deployment), Policies: []policyv1alpha1.Policy{parse(t, mistyped, &policyv1alpha1.PropagationPolicy{})},
		Clusters: []*clusterv1alpha1.Cluster{cluster(t, "east", "gold", `spec: {taints: [{key: edge, effect: NoSchedule}]}`), cluster(t, "west", "gold", "")},
	}
	golden(t, "mistyped.txt", explain.Explain(in).Text(explain.TextOptions{}))
	for name, status := range map[string]string{
		"policy.txt":           `status: {observedGeneration: 2, templates: 2, bindings: 1, placed: 1, conditions: [{type: Ready, status: "True", observedGeneration: 2}], lastProblem: {object: "Deployment shop/api", message: "no cluster fits"}}`,
		"policy-not-taken.txt": `status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", reason: NotTakenUp, message: "it could not take up Deployment shop/web: no answer", observedGeneration: 2}]}`,
		"policy-idle.txt":      `status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 2}]}`,
		"policy-unserved.txt":  `status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", observedGeneration: 2, message: "the control plane does not serve kind Widget"}]}`,
		"policy-unseen.txt":    `status: {observedGeneration: 1, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}`,
	} {
		in.Template = template(t, mistyped+status)
		golden(t, name, explain.Explain(in).Text(explain.TextOptions{}))
	}
}

const strange = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {namespace: shop, name: sizes, uid: u-o}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules: [{targetCluster: {clusterNames: [wset]}, overriders: {plaintext: [{path: /spec/replicas, operator: replace, value: 1}]}}]
`

// TestAnOverrideThatNamesAStranger checks that an unknown cluster in an override
// is shown to whoever asks about the override, or about what it is for.
func TestAnOverrideThatNamesAStranger(t *testing.T) {
	want := []explain.Problem{{
		Reason: "UnknownCluster", Message: "OverridePolicy shop/sizes: clusterNames names wset, which does not exist (did you mean west?)",
		Next: "correct the name, or join the cluster: flotilla get clusters",
	}}
	o := parse(t, strange, &policyv1alpha1.OverridePolicy{})
	other := o.DeepCopy()
	other.Name, other.Spec.ResourceSelectors[0].Name = "other", "other"
	for name, manifest := range map[string]string{"the workload": deployment, "the override": strange} {
		in := explain.Input{
			Now: noon, Template: template(t, manifest), Clusters: []*clusterv1alpha1.Cluster{cluster(t, "west", "gold", "")},
			Overrides: []policyv1alpha1.Override{o, other},
		}
		got := slices.DeleteFunc(explain.Explain(in).Problems, func(p explain.Problem) bool { return p.Reason != "UnknownCluster" })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOurKinds checks that kinds on which the control plane itself acts need no
// policy.
func TestOurKinds(t *testing.T) {
	cases := map[string]struct{ manifest, want string }{
		"a Kustomization": {
			"{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: shop, name: web, uid: u}}",
			"the control plane acts on it by itself; what comes of it: flotilla tree kustomization/web -n shop",
		},
		"a GitRepository": {
			"{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: shop, name: web, uid: u}}",
			"the control plane acts on it by itself; what comes of it: flotilla trace gitrepository/web -n shop",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := explain.Explain(explain.Input{Now: noon, Template: template(t, tc.manifest)})
			if diff := cmp.Diff(tc.want, got.Carried.Why); diff != "" || len(got.Problems) > 0 {
				t.Errorf("problems %+v (-want +got):\n%s", got.Problems, diff)
			}
		})
	}
}
