package scheme

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	autoscalingv1alpha1 "github.com/flotilla-io/flotilla/api/autoscaling/v1alpha1"
	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/api/crds"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

func TestEveryDefinedKindIsRegistered(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	s := New()
	for _, crd := range all {
		for _, version := range crd.Spec.Versions {
			for _, kind := range []string{crd.Spec.Names.Kind, crd.Spec.Names.ListKind} {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: kind}
				if !s.Recognizes(gvk) {
					t.Errorf("%s is defined but not registered", gvk)
				}
			}
		}
	}
}

func TestKindsServedInProcessAreRegistered(t *testing.T) {
	s := New()
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
		{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "ClusterList"},
		{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "ClusterProxyOptions"},
		{Group: "search.karmada.io", Version: "v1alpha1", Kind: "ResourceRegistry"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		if !s.Recognizes(gvk) {
			t.Errorf("%s is not registered", gvk)
		}
	}
}

// TestWireForm holds the fields whose JSON differs from what their Go names, or
// the habit of omitting what is empty, would lead one to expect.
func TestWireForm(t *testing.T) {
	cases := map[string]struct {
		object any
		want   string
	}{
		"the affinity a scheduler observed": {
			workv1alpha2.ResourceBindingStatus{SchedulerObservedAffinityName: "eu"},
			`{"schedulerObservingAffinityName":"eu"}`,
		},
		"the replicas that an interpreter is asked to write": {
			configv1alpha1.ResourceInterpreterRequest{UID: "u", Name: "web", Operation: "ReviseReplica", DesiredReplicas: ptr.To[int32](2)},
			`{"uid":"u","kind":{"group":"","version":"","kind":""},"name":"web","operation":"ReviseReplica","object":null,"replicas":2}`,
		},
		"an override without overriders": {
			policyv1alpha1.OverrideSpec{},
			`{"overriders":{}}`,
		},
		"a policy without a placement": {
			policyv1alpha1.PropagationSpec{},
			`{"resourceSelectors":null,"placement":{}}`,
		},
		"a placement that excludes": {
			policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{"eu-1"}},
			`{"exclude":["eu-1"]}`,
		},
		"an autoscaler that never ran": {
			autoscalingv1alpha1.FederatedHPA{},
			`{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"maxReplicas":0},"status":{"desiredReplicas":0,"currentMetrics":null}}`,
		},
		"a cron autoscaler that never ran": {
			autoscalingv1alpha1.CronFederatedHPA{},
			`{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"rules":null},"status":{}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(c.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Both scopes of a kind are one thing to code that knows their interface.
func TestBothScopesAnswerWithTheirOwnFields(t *testing.T) {
	for name, policy := range map[string]policyv1alpha1.Policy{
		"namespaced": &policyv1alpha1.PropagationPolicy{},
		"cluster":    &policyv1alpha1.ClusterPropagationPolicy{},
	} {
		policy.PropagationSpec().SchedulerName = "s"
		policy.PropagationStatus().ObservedGeneration = 2
		checkJSON(t, name+" policy", policy, `{"metadata":{},"spec":{"resourceSelectors":null,"placement":{},"schedulerName":"s"},"status":{"observedGeneration":2}}`)
	}
	for name, override := range map[string]policyv1alpha1.Override{
		"namespaced": &policyv1alpha1.OverridePolicy{},
		"cluster":    &policyv1alpha1.ClusterOverridePolicy{},
	} {
		override.OverrideSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret"}}
		checkJSON(t, name+" override", override, `{"metadata":{},"spec":{"resourceSelectors":[{"apiVersion":"v1","kind":"Secret"}],"overriders":{}}}`)
	}
	for name, binding := range map[string]workv1alpha2.Binding{
		"namespaced": &workv1alpha2.ResourceBinding{},
		"cluster":    &workv1alpha2.ClusterResourceBinding{},
	} {
		binding.BindingSpec().Replicas = 2
		binding.BindingStatus().Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled}}
		checkJSON(t, name+" binding", binding, `{"metadata":{},"spec":{"resource":{"apiVersion":"","kind":"","name":""},"replicas":2},"status":{"conditions":[{"type":"Scheduled","status":"","lastTransitionTime":null,"reason":"","message":""}]}}`)
	}
}

func checkJSON(t *testing.T, name string, object runtime.Object, want string) {
	t.Helper()
	got, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
