package plan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// jobInput is a job of six completions, two of whose three replicas run in a.
func jobInput(t *testing.T, change ...func(*plan.WorksInput)) plan.WorksInput {
	in := input(t)
	in.Template = object(t, `{apiVersion: batch/v1, kind: Job, metadata: {namespace: shop, name: web, uid: u}, spec: {parallelism: 3, completions: 6}}`)
	spec := in.Binding.BindingSpec()
	spec.Resource.APIVersion, spec.Resource.Kind = "batch/v1", "Job"
	spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	for _, f := range change {
		f(&in)
	}
	return in
}

// TestWorksLeaveClaims: what a StatefulSet makes in a cluster stays there when it leaves, whatever it, or an override, says
// of it; unless somebody named its data.
func TestWorksLeaveClaims(t *testing.T) {
	const path = "/spec/persistentVolumeClaimRetentionPolicy"
	says := func(policy string) policyv1alpha1.Override {
		o := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o"}}
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
			Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: path, Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: []byte(policy)}}},
		}}}
		return o
	}
	for name, tc := range map[string]struct {
		template  string
		overrides []policyv1alpha1.Override
		want      any
	}{
		"it says that they go":            {template: `metadata: {namespace: shop, name: web, uid: u}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}`, want: map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"}},
		"it says nothing":                 {template: `metadata: {namespace: shop, name: web, uid: u}, spec: {}`},
		"an override says that they go":   {template: `metadata: {namespace: shop, name: web, uid: u}, spec: {}`, overrides: []policyv1alpha1.Override{says(`{"whenDeleted":"Delete"}`)}, want: map[string]any{"whenDeleted": "Retain"}},
		"it says that its data goes, too": {template: `metadata: {namespace: shop, name: web, uid: u, annotations: {propagation.flotilla.io/allow-cascade: "true"}}, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}`, want: map[string]any{"whenDeleted": "Delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Template, in.Overrides = object(t, "{apiVersion: apps/v1, kind: StatefulSet, "+tc.template+"}"), tc.overrides
			in.Binding.BindingSpec().Resource.Kind = "StatefulSet"
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
				manifest := &unstructured.Unstructured{}
				if err := manifest.UnmarshalJSON(p.Work.Spec.Workload.Manifests[0].Raw); err != nil {
					t.Fatal(err)
				}
				got, _, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "persistentVolumeClaimRetentionPolicy")
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", p.Cluster, diff)
				}
			}
		})
	}
}

// TestCompletions: the completions of a job are divided like its replicas, if these are.
func TestCompletions(t *testing.T) {
	of := func(parallelism, completions int64) map[string]any {
		return map[string]any{"parallelism": parallelism, "completions": completions}
	}
	cases := map[string]struct {
		change func(*plan.WorksInput)
		want   map[string]any // spec by cluster
	}{
		"divided": {func(*plan.WorksInput) {}, map[string]any{"a": of(2, 4), "b": of(1, 2)}},
		"where only others need it there are all": {func(in *plan.WorksInput) {
			in.Cluster = clusters("a", "b", "c")
			in.Binding.BindingSpec().RequiredBy = []workv1alpha2.BindingSnapshot{{Name: "x", Clusters: []workv1alpha2.TargetCluster{{Name: "c"}}}}
		}, map[string]any{"a": of(2, 4), "b": of(1, 2), "c": of(3, 6)}},
		"duplicated":         {func(in *plan.WorksInput) { in.Binding.BindingSpec().Placement.ReplicaScheduling = nil }, map[string]any{"a": of(2, 6), "b": of(1, 6)}},
		"placed by others":   {func(in *plan.WorksInput) { in.Binding.BindingSpec().Placement = nil }, map[string]any{"a": of(2, 6), "b": of(1, 6)}},
		"of no replicas":     {func(in *plan.WorksInput) { in.Binding.BindingSpec().Replicas = 0 }, map[string]any{"a": of(3, 6), "b": of(3, 6)}},
		"it says no number":  {func(in *plan.WorksInput) { unstructured.RemoveNestedField(in.Template.Object, "spec", "completions") }, map[string]any{"a": map[string]any{"parallelism": int64(2)}, "b": map[string]any{"parallelism": int64(1)}}},
		"it says no integer": {func(in *plan.WorksInput) { in.Template.Object["spec"].(map[string]any)["completions"] = "6" }, map[string]any{"a": map[string]any{"parallelism": int64(2), "completions": "6"}, "b": map[string]any{"parallelism": int64(1), "completions": "6"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := jobInput(t, tc.change)
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			got, before := map[string]any{}, map[string]any{}
			for _, p := range plans {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
				got[p.Cluster] = object(t, string(p.Work.Spec.Workload.Manifests[0].Raw)).Object["spec"]
				manifest, err := in.Manifest(p.Cluster)
				if err != nil {
					t.Fatal(err)
				}
				before[p.Cluster] = manifest.Object["spec"]
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("specs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, before); diff != "" {
				t.Errorf("specs without overrides (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManifestOfNoTarget: there is no manifest for a cluster that the binding is not
// for.
func TestManifestOfNoTarget(t *testing.T) {
	in := input(t)
	manifest, err := in.Manifest("c")
	if manifest != nil || err == nil || err.Error() != "c: the binding is not for this cluster" {
		t.Errorf("manifest = %v, error %v", manifest, err)
	}
}

// TestReplicasCannotBeRevised: a template whose replicas cannot be set goes to no
// cluster, and says why.
func TestReplicasCannotBeRevised(t *testing.T) {
	in := input(t)
	in.Interpreter = interpreter.New(kinds.Table{in.Template.GroupVersionKind(): {
		Revise: func(_ kinds.Object, n int32) (kinds.Object, error) { return nil, fmt.Errorf("not %d", n) },
	}})
	plans, err := plan.Works(in)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range plans {
		if p.Work != nil || p.Err == nil {
			t.Fatalf("in %s: %v, error %v", p.Cluster, p.Work, p.Err)
		}
		got[p.Cluster] = p.Err.Error()
	}
	want := map[string]string{"a": "revise replicas of Deployment web: not 2", "b": "revise replicas of Deployment web: not 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// TestWorksSayWhatHappensToWhatIsThere: a template says first whether it takes the place
// of what a cluster has already, then its policy.
func TestWorksSayWhatHappensToWhatIsThere(t *testing.T) {
	const overwrite, abort = workv1alpha2.ResourceConflictResolutionOverwrite, workv1alpha2.ResourceConflictResolutionAbort
	cases := map[string]struct {
		policy   policyv1alpha1.ConflictResolution
		template string // its annotation
		want     string
	}{
		"nobody says anything":             {"", "", abort},
		"the policy takes it over":         {policyv1alpha1.ConflictOverwrite, "", overwrite},
		"the policy leaves it":             {policyv1alpha1.ConflictAbort, "", abort},
		"the template takes it over":       {policyv1alpha1.ConflictAbort, overwrite, overwrite},
		"the template leaves it":           {policyv1alpha1.ConflictOverwrite, abort, abort},
		"the template says what is no way": {policyv1alpha1.ConflictOverwrite, "merge", overwrite},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Binding.BindingSpec().ConflictResolution = tc.policy
			if tc.template != "" {
				in.Template.SetAnnotations(map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: tc.template})
			}
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range plans {
				manifest := object(t, string(p.Work.Spec.Workload.Manifests[0].Raw))
				got := []string{p.Work.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation], manifest.GetAnnotations()[workv1alpha2.ResourceConflictResolutionAnnotation]}
				if diff := cmp.Diff([]string{tc.want, tc.want}, got); diff != "" {
					t.Errorf("in %s: Work, manifest (-want +got):\n%s", p.Cluster, diff)
				}
			}
		})
	}
}

// TestSuspended: changes are kept from all clusters, or from those that are listed.
func TestSuspended(t *testing.T) {
	of := func(all *bool, names ...string) *workv1alpha2.Suspension {
		s := &workv1alpha2.Suspension{}
		s.Dispatching = all
		if names != nil {
			s.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: names}
		}
		return s
	}
	cases := map[string]struct {
		suspension *workv1alpha2.Suspension
		want       map[string]bool
	}{
		"from none":               {nil, map[string]bool{"a": false, "b": false}},
		"nothing is said of them": {of(nil), map[string]bool{"a": false, "b": false}},
		"from all":                {of(ptr.To(true)), map[string]bool{"a": true, "b": true}},
		"from one":                {of(nil, "x", "b"), map[string]bool{"a": false, "b": true}},
		"from one, expressly":     {of(ptr.To(false), "b"), map[string]bool{"a": false, "b": true}},
		"only of scheduling":      {&workv1alpha2.Suspension{Scheduling: ptr.To(true)}, map[string]bool{"a": false, "b": false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			in.Binding.BindingSpec().Suspension = tc.suspension
			plans, err := plan.Works(in)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, p := range plans {
				got[p.Cluster] = *p.Work.Spec.SuspendDispatching
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("suspended (-want +got):\n%s", diff)
			}
		})
	}
}
