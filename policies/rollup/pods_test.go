package rollup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestWhatPodsSay checks that a commit tells why the Pods of a workload do not start, for as long as it waits for them.
func TestWhatPodsSay(t *testing.T) {
	const none = `{"replicas":5,"updatedReplicas":5,"resourceTemplateGeneration":3}`
	says := func(w *workv1alpha1.Work, message string, generation int64) *workv1alpha1.Work {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
			Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: "ErrImagePull", Message: message, ObservedGeneration: generation,
		})
		return w
	}
	const pull = "ErrImagePull: no such image: a:1"
	for name, tc := range map[string]struct {
		kind string
		work *workv1alpha1.Work
		want rollup.Rollup
	}{
		"an image cannot be pulled": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceUnhealthy, none), pull, 2),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web 0/5: ErrImagePull: no such image: a:1", Total: 1},
		},
		"the deadline is over as well, which says less": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceUnhealthy, strings.Replace(none, "{", `{"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"}],`, 1)), pull, 2),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web 0/5: ErrImagePull: no such image: a:1", Total: 1},
		},
		"replicas of the version before serve meanwhile": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceHealthy, `{"replicas":2,"updatedReplicas":1,"readyReplicas":1,"resourceTemplateGeneration":3}`), pull, 2),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web: ErrImagePull: no such image: a:1; the version before still runs", Total: 1},
		},
		"a Job does not start": {
			"Job", says(work("a", "True", "", workv1alpha2.ResourceHealthy, `{"active":1}`), pull, 2),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Job shop/web: job is running: ErrImagePull: no such image: a:1", Total: 1},
		},
		"a Job has failed": {
			"Job", says(work("a", "True", "", workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Failed","status":"True"}]}`), "Error: container app ended with exit code 1", 2),
			rollup.Rollup{State: "failure", Description: "0/1 clusters ready: a failed on Job shop/web: job failed: Error: container app ended with exit code 1", Total: 1},
		},
		"it was said of the version before": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceUnhealthy, none), pull, 1),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web 0/5", Total: 1},
		},
		"it is well by now": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceHealthy, `{"replicas":5,"updatedReplicas":5,"readyReplicas":5,"resourceTemplateGeneration":3}`), pull, 2),
			rollup.Rollup{State: "success", Description: "1/1 clusters ready", Ready: 1, Total: 1},
		},
		"a cluster says it in lines, and at length": {
			"Deployment", says(work("a", "True", "", workv1alpha2.ResourceUnhealthy, none), "ErrImagePull:\n"+strings.Repeat("x", 300), 2),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web 0/5: ErrImagePull: " + strings.Repeat("x", 68) + "…", Total: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := template(tc.kind)
			got := rollup.Revision([]rollup.Part{rollup.PartOf(of, binding(succeeded, "a"), []*workv1alpha1.Work{tc.work}, nil)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhosePodsAreToBeLookedAt: those of a workload that is not as it is wanted, and of no other.
func TestWhosePodsAreToBeLookedAt(t *testing.T) {
	deployment, job := schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "batch", Kind: "Job"}
	statefulSet := schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	for name, tc := range map[string]struct {
		kind   schema.GroupKind
		health workv1alpha2.ResourceHealth
		status string
		want   bool
	}{
		"a healthy one":                        {deployment, workv1alpha2.ResourceHealthy, `{"replicas":2,"updatedReplicas":2}`, false},
		"one that is not":                      {deployment, workv1alpha2.ResourceUnhealthy, `{"replicas":2}`, true},
		"one of which the version before runs": {deployment, workv1alpha2.ResourceHealthy, `{"replicas":2,"updatedReplicas":1}`, true},
		"one of which nothing is known":        {deployment, workv1alpha2.ResourceUnknown, ``, false},
		"one that has made none":               {deployment, workv1alpha2.ResourceUnhealthy, `{"observedGeneration":1}`, false},
		"one that nobody has looked at":        {deployment, workv1alpha2.ResourceUnhealthy, ``, false},
		"a StatefulSet that has made none":     {statefulSet, workv1alpha2.ResourceUnhealthy, `{"observedGeneration":1}`, true},
		"one that is queued":                   {deployment, workv1alpha2.ResourceHealthy, `{"replicas":1,"resourceWaiting":true}`, true},
		"a Job that runs":                      {job, workv1alpha2.ResourceHealthy, `{"active":2,"ready":2}`, false},
		"a Job of which some do not start":     {job, workv1alpha2.ResourceHealthy, `{"active":2,"ready":1}`, true},
		"a Job that has failed":                {job, workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Failed","status":"True"}]}`, true},
		"a Job that is done":                   {job, workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Complete","status":"True"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var status *runtime.RawExtension
			if tc.status != "" {
				status = &runtime.RawExtension{Raw: []byte(tc.status)}
			}
			if got := rollup.AwaitsPods(tc.kind, tc.health, status); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}
