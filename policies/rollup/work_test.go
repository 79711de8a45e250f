package rollup_test

import (
	"cmp"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestOfWork checks the state and the reason that a Work alone shows.
func TestOfWork(t *testing.T) {
	type condition struct{ kind, status, message string }
	for name, tc := range map[string]struct {
		applied         string
		refusal         string // empty: "refused"
		health          workv1alpha2.ResourceHealth
		conditions      []condition
		fault           string
		leaving, behind bool
		want            string
	}{
		"never sent":                      {want: "Progressing "},
		"applied and well":                {applied: "True", health: workv1alpha2.ResourceHealthy, want: "Healthy "},
		"not applied":                     {applied: "False", want: "Failed refused"},
		"its namespace is being deleted":  {applied: "False", refusal: "waits, as Namespace shop is being deleted in the cluster: it is made once it is gone", want: "Progressing waits, as Namespace shop is being deleted in the cluster: it is made once it is gone"},
		"not ready":                       {applied: "True", health: workv1alpha2.ResourceUnhealthy, want: "Progressing "},
		"not ready, as its Pods say":      {applied: "True", health: workv1alpha2.ResourceUnhealthy, conditions: []condition{{"PodsReady", "False", "ErrImagePull: no such image"}}, want: "Progressing ErrImagePull: no such image"},
		"an older version":                {applied: "True", behind: true, want: "Progressing "},
		"an override fails":               {applied: "True", health: workv1alpha2.ResourceHealthy, fault: "no such path", want: "Failed no such path"},
		"a rule fails":                    {applied: "True", conditions: []condition{{"Interpreted", "False", "boom"}}, want: "Progressing boom"},
		"it differs, and is left so":      {applied: "True", health: workv1alpha2.ResourceHealthy, conditions: []condition{{"Drifted", "True", "spec.replicas is 7"}}, want: "Healthy differs from what was applied, and is left so: spec.replicas is 7"},
		"it was removed, and is left so":  {applied: "True", conditions: []condition{{"Drifted", "True", "it was removed"}}, want: "Progressing differs from what was applied, and is left so: it was removed"},
		"it differed, and was put back":   {applied: "True", health: workv1alpha2.ResourceHealthy, conditions: []condition{{"Drifted", "False", "spec.replicas was 7"}}, want: "Healthy "},
		"it goes":                         {applied: "True", health: workv1alpha2.ResourceHealthy, leaving: true, want: "Progressing it is being taken out of this cluster"},
		"it goes, and something keeps it": {applied: "True", leaving: true, conditions: []condition{{"DeletionBlocked", "True", "its finalizers keep it"}}, want: "Progressing its finalizers keep it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := work("a", tc.applied, cmp.Or(tc.refusal, "refused"), tc.health, "")
			for _, s := range tc.conditions {
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: s.kind, Status: metav1.ConditionStatus(s.status), Message: s.message, ObservedGeneration: 2})
			}
			if tc.fault != "" {
				w.Annotations = map[string]string{propagation.FaultAnnotation: tc.fault}
			}
			if tc.leaving {
				w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			if tc.behind {
				w.Generation = 3
			}
			state, text := rollup.OfWork(w)
			if diff := gocmp.Diff(tc.want, state.String()+" "+text); diff != "" {
				t.Errorf("it is (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotUnderstood checks that the binding's condition Interpreted is
// reported, whatever the state.
func TestWhatIsNotUnderstood(t *testing.T) {
	b := binding(succeeded, "a")
	b.BindingStatus().Conditions = append(b.BindingStatus().Conditions, metav1.Condition{Type: workv1alpha2.Interpreted, Status: metav1.ConditionFalse, Message: "webhook w: no answer"})
	part := rollup.PartOf(template("Deployment"), b, []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, "")}, nil)
	if part.Fault != "webhook w: no answer" {
		t.Errorf("fault %q", part.Fault)
	}
}
