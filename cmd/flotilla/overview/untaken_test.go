package overview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestTraceOfWhatCouldNotBeTakenUp: an object that its policy could not claim is reported as such, and not only as without a policy.
func TestTraceOfWhatCouldNotBeTakenUp(t *testing.T) {
	carries := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	carries.Status.Conditions = []metav1.Condition{{Type: policyv1alpha1.PolicyReady, Status: metav1.ConditionTrue, Reason: policyv1alpha1.PolicyReasonNotTakenUp, Message: "it could not"}}
	carries.Status.LastProblem = &policyv1alpha1.PolicyProblem{Object: "Machine shop/web", Message: "read its replicas: no answer"}
	elsewhere := &policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	carries.Status.DeepCopyInto(&elsewhere.Status)
	elsewhere.Status.LastProblem = &policyv1alpha1.PolicyProblem{Object: "Machine shop/db", Message: "no such class"}
	for title, want := range map[string]string{
		"web":  "A policy means it, and could not take it up: read its replicas: no answer",
		"db":   "A policy means it, and could not take it up: no such class",
		"free": "No policy carries it to clusters: flotilla explain machine/free -n shop says why.",
	} {
		template := &unstructured.Unstructured{}
		template.SetAPIVersion("example.com/v1")
		template.SetKind("Machine")
		template.SetNamespace("shop")
		template.SetName(title)
		tracer := &tracer{reader: reader{fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(carries, elsewhere).Build()}}
		if err := tracer.delivery(t.Context(), template); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, tracer.out.Notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

// TestTreeOfWhatNoPolicyCarries: one that ends at the template says why.
func TestTreeOfWhatNoPolicyCarries(t *testing.T) {
	for title, tc := range map[string]struct {
		apiVersion, kind string
		want             []string
	}{
		"a workload":                     {"apps/v1", "Deployment", []string{"No policy carries it to clusters: flotilla explain deployment/nopol -n shop says why."}},
		"what the control plane acts on": {"notification.toolkit.fluxcd.io/v1", "Receiver", []string{"The control plane acts on it by itself; what it says of it: flotilla describe receiver/nopol -n shop"}},
		"what stays by its kind":         {"policy.karmada.io/v1alpha1", "PropagationPolicy", []string{"Objects of this kind, or in this namespace, stay on the control plane."}},
	} {
		template := &unstructured.Unstructured{}
		template.SetAPIVersion(tc.apiVersion)
		template.SetKind(tc.kind)
		template.SetNamespace("shop")
		template.SetName("nopol")
		g := &grower{reader: reader{fake.NewClientBuilder().WithScheme(scheme.New()).Build()}, met: map[client.ObjectKey]bool{}}
		node, notes, err := g.single(t.Context(), template)
		if err != nil || len(node.Children) > 0 {
			t.Errorf("%s: error %v, children %v", title, err, node.Children)
		}
		if diff := cmp.Diff(tc.want, notes); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}
