package rollup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// claimed sets the claim of a policy on a binding.
func claimed(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "web"},
	}}).Set(b)
	return b
}

// TestUnknownDependencies checks that a binding whose dependencies cannot be
// interpreted reports it.
func TestUnknownDependencies(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{dependency.FaultAnnotation: "line 3: nil"}}}
	status := rollup.Status(b, rollup.Report{Total: rollup.Total{Fault: "bang"}, Now: time.Unix(0, 0)})
	got := meta.FindStatusCondition(status.Conditions, workv1alpha2.Interpreted)
	want := &metav1.Condition{Type: "Interpreted", Status: "False", Reason: "InterpreterFailed", Message: "bang; line 3: nil", LastTransitionTime: metav1.Unix(0, 0)}
	got.LastTransitionTime = metav1.Unix(0, 0)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	delete(b.Annotations, dependency.FaultAnnotation)
	b.Status = status
	status = rollup.Status(b, rollup.Report{Now: time.Unix(0, 0)})
	if c := meta.FindStatusCondition(status.Conditions, workv1alpha2.Interpreted); c != nil {
		t.Errorf("condition = %v", c)
	}
}

// TestAttached checks that a binding which exists only for others has no version
// of its own to compare with, while its Works do.
func TestAttached(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "settings"},
	}}
	digest, err := propagation.Digest(template)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
		RequiredBy: []workv1alpha2.BindingSnapshot{{Name: "web-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}},
	}}
	for name, tc := range map[string]struct{ digest, want string }{
		"the latest version":   {digest, "Healthy "},
		"the one before":       {"older", "Progressing a: latest version not sent yet"},
		"one that nobody said": {"", "Healthy "},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workv1alpha1.Work{
				ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("a"), Name: "settings", Annotations: map[string]string{}},
				Status: workv1alpha1.WorkStatus{
					Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}},
					ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}},
				},
			}
			if tc.digest != "" {
				w.Annotations[propagation.DigestAnnotation] = tc.digest
			}
			state, reason := rollup.PartOf(template, b, []*workv1alpha1.Work{w}, nil).Worst(nil)
			if got := state.String() + " " + reason; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
