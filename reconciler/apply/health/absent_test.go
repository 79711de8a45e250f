package health_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// TestClustersThatAreNotThere: the assessment names clusters of a placement that do not exist, whether the object runs
// in others or nowhere.
func TestClustersThatAreNotThere(t *testing.T) {
	const typo, unfit = "clusterNames names wst, which does not exist (did you mean west?)", "0/2 clusters are available: 2 are tainted"
	const untold = "clusterNames names 1 that does not exist, and is not told, as text of a Secret is in the policy"
	names := func(clusters ...string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
		}
	}
	nowhere := func(reason string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = nil
			b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: reason, Message: unfit}}
		}
	}
	secretive := func(b *workv1alpha2.ResourceBinding) {
		propagation.RecordSecrets(b, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}}})
	}
	for name, tc := range map[string]struct {
		binding []func(*workv1alpha2.ResourceBinding)
		state   rollup.State
		reason  string
		absent  string
	}{
		"all are there":                          {binding: []func(*workv1alpha2.ResourceBinding){names("east", "west")}},
		"one is not, and the other one has it":   {binding: []func(*workv1alpha2.ResourceBinding){names("east", "wst")}, absent: "ConfigMap shop/web: " + typo},
		"one is not, and the other one is unfit": {binding: []func(*workv1alpha2.ResourceBinding){names("east", "wst"), nowhere(workv1alpha2.BindingReasonNoClusterFit)}, state: rollup.Failed, reason: typo + "; " + unfit},
		"one is not, and the other one is full":  {binding: []func(*workv1alpha2.ResourceBinding){names("east", "wst"), nowhere(workv1alpha2.BindingReasonUnschedulable)}, state: rollup.Progressing, reason: typo + "; " + unfit},
		"none is":                                {binding: []func(*workv1alpha2.ResourceBinding){names("wst"), nowhere(workv1alpha2.BindingReasonNoClusterFit)}, state: rollup.Failed, reason: typo + "; " + unfit},
		"text of a Secret is in the policy":      {binding: []func(*workv1alpha2.ResourceBinding){names("east", "wst"), secretive}, absent: "ConfigMap shop/web: " + untold},
	} {
		t.Run(name, func(t *testing.T) {
			template := object(t, config)
			b := binding(t, template)
			for _, edit := range tc.binding {
				edit(b)
			}
			hub := hubOf([]client.Object{b, work(b), cluster("east"), cluster("west")}...)
			entry := entryOf(template)
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(template): template}})
			got, err := reader.Assess(t.Context(), health.Request{Entries: []inventory.Entry{entry}, Observed: map[inventory.ID]*unstructured.Unstructured{entry.ID: template}, As: hub})
			if err != nil {
				t.Fatal(err)
			}
			got.Replaced = rollup.Replaced{}
			want := health.Assessment{Verdicts: []health.Verdict{{ID: entry.ID, State: tc.state, Reason: tc.reason}}, Absent: tc.absent}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(rollup.Replaced{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
