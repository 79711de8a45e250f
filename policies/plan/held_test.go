package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// moves is a binding with three replicas that ran in a alone and is moved to b, and the Work in a.
func moves(t *testing.T, mode policyv1alpha1.PurgeMode) (plan.WorksInput, []*workv1alpha1.Work) {
	in := input(t)
	b := in.Binding.(*workv1alpha2.ResourceBinding)
	digest, err := propagation.Digest(in.Template)
	if err != nil {
		t.Fatal(err)
	}
	b.Annotations = map[string]string{propagation.DigestAnnotation: digest}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}}
	plans, err := plan.Works(in)
	if err != nil || plans[0].Err != nil {
		t.Fatal(err, plans[0].Err)
	}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "b", Replicas: 3}}
	b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "a", PurgeMode: mode}}
	return in, []*workv1alpha1.Work{plans[0].Work}
}

// TestHeldIsWhatTheBindingIsFor: what is made for a new cluster of the Work in the old one is, to the byte, what would have been made of
// the template.
func TestHeldIsWhatTheBindingIsFor(t *testing.T) {
	in, works := moves(t, policyv1alpha1.PurgeModeGracefully)
	want, err := plan.Works(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Template = object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u, generation: 5, labels: {new: "1"}}, spec: {replicas: 9, template: {spec: {containers: [{name: a, image: refused}]}}}}`)
	before := in.Template.DeepCopy()
	got, err := plan.Held(in, works, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, in.Template); diff != "" {
		t.Errorf("the template that came in was changed:\n%s", diff)
	}
}

// TestHeld: what each cluster of a move should hold while an edit of the template is held back.
func TestHeld(t *testing.T) {
	const held = "the template's latest edit is held back, and what it moves to does not get the version before: "
	divided := func(in *plan.WorksInput) *workv1alpha2.ResourceBindingSpec {
		spec := in.Binding.BindingSpec()
		spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
		return spec
	}
	for name, tc := range map[string]struct {
		mode    policyv1alpha1.PurgeMode
		change  func(in *plan.WorksInput, works []*workv1alpha1.Work)
		unknown bool
		want    []string // cluster: what becomes of it
	}{
		"the new one gets what the old one has": {want: []string{"b: 3 of nginx"}},
		"which overrides apply is not known":    {unknown: true, want: []string{"b: " + held + "which overrides apply is not known while a revision is half written"}},
		"it has to leave first":                 {mode: policyv1alpha1.PurgeModeDirectly, want: []string{"b: " + held + "a alone has it, and would have to be left first (failover.cluster.purgeMode: Directly)"}},
		"overrides changed it in the old one": {change: func(_ *plan.WorksInput, works []*workv1alpha1.Work) {
			works[0].Annotations[policyv1alpha1.AppliedOverrides] = "[]"
		}, want: []string{"b: " + held + "overrides have changed it where it runs"}},
		"the old one has an older one": {change: func(in *plan.WorksInput, works []*workv1alpha1.Work) {
			works[0].Annotations[propagation.DigestAnnotation] = "x"
			in.Binding.BindingSpec().ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		}, want: []string{"b: " + held + "no cluster has it any more"}},
		"the old one has one that asks for as much": {change: func(_ *plan.WorksInput, works []*workv1alpha1.Work) {
			works[0].Annotations[propagation.DigestAnnotation] = "x"
		}, want: []string{"b: 3 of nginx"}},
		"the template is what clusters have, and the binding is ahead": {change: func(in *plan.WorksInput, works []*workv1alpha1.Work) {
			digest, err := propagation.Digest(in.Template)
			if err != nil {
				t.Fatal(err)
			}
			works[0].Annotations[propagation.DigestAnnotation] = digest
		}},
		"nothing moves, and nothing is known of it": {unknown: true, change: func(in *plan.WorksInput, _ []*workv1alpha1.Work) {
			in.Binding.BindingSpec().GracefulEvictionTasks = nil
		}},
		"it stays where it is": {change: func(in *plan.WorksInput, _ []*workv1alpha1.Work) { in.Binding.BindingSpec().Clusters[0].Name = "a" }, want: []string{"a: stands"}},
		"the one that stays takes over replicas": {change: func(in *plan.WorksInput, _ []*workv1alpha1.Work) {
			divided(in).Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 5}}
		}, want: []string{"a: 5 of nginx"}},
		"it cannot": {
			change: func(in *plan.WorksInput, works []*workv1alpha1.Work) {
				divided(in).Clusters = []workv1alpha2.TargetCluster{{Name: "a", Replicas: 5}}
				works[0].Annotations[policyv1alpha1.AppliedOverrides] = "[]"
			},
			want: []string{"a: " + held + "overrides have changed it where it runs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, works := moves(t, tc.mode)
			in.Template = object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web, uid: u, generation: 5}, spec: {replicas: 9, template: {spec: {containers: [{name: a, image: refused}]}}}}`)
			if tc.change != nil {
				tc.change(&in, works)
			}
			plans, err := plan.Held(in, works, tc.unknown)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range plans {
				got = append(got, p.Cluster+": "+becomes(t, p))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func becomes(t *testing.T, p plan.WorkPlan) string {
	t.Helper()
	switch {
	case p.Err != nil:
		return p.Err.Error()
	case p.Stands:
		return "stands"
	}
	var manifest unstructured.Unstructured
	if err := manifest.UnmarshalJSON(p.Work.Spec.Workload.Manifests[0].Raw); err != nil {
		t.Fatal(err)
	}
	n, _, _ := unstructured.NestedInt64(manifest.Object, "spec", "replicas")
	image := "nginx"
	if strings.Contains(string(p.Work.Spec.Workload.Manifests[0].Raw), "refused") {
		image = "what is refused"
	}
	return fmt.Sprintf("%d of %s", n, image)
}
