package rollup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// TestHealthText checks the health that users see, which may differ from the one
// that counts.
func TestHealthText(t *testing.T) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	for name, tc := range map[string]struct {
		kind   schema.GroupKind
		health workv1alpha2.ResourceHealth
		status string
		want   string
	}{
		"a Job that runs":                 {job, workv1alpha2.ResourceHealthy, `{"active":1}`, "Running"},
		"a Job that has ended":            {job, workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Complete","status":"True"}]}`, "Healthy"},
		"a Job that has failed":           {job, workv1alpha2.ResourceUnhealthy, `{"conditions":[{"type":"Failed","status":"True"}]}`, "Unhealthy"},
		"a Job that nobody judged":        {job, workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Failed","status":"True"}]}`, "Unhealthy"},
		"a Deployment of two versions":    {schema.GroupKind{Group: "apps", Kind: "Deployment"}, workv1alpha2.ResourceHealthy, `{"replicas":5,"updatedReplicas":3}`, "Updating"},
		"a Deployment":                    {schema.GroupKind{Group: "apps", Kind: "Deployment"}, workv1alpha2.ResourceHealthy, `{"replicas":1,"updatedReplicas":1}`, "Healthy"},
		"another Job, by its own rules":   {schema.GroupKind{Group: "batch.volcano.sh", Kind: "Job"}, workv1alpha2.ResourceHealthy, `{"active":1}`, "Healthy"},
		"something of which nothing said": {job, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var status *runtime.RawExtension
			if tc.status != "" {
				status = &runtime.RawExtension{Raw: []byte(tc.status)}
			}
			if got := rollup.HealthText(tc.kind, tc.health, status); got != tc.want {
				t.Errorf("it is told as %q, want %q", got, tc.want)
			}
		})
	}
}

// TestNeverSent checks that a cluster to which a template was never sent, because
// of a suspension, is reported as such.
func TestNeverSent(t *testing.T) {
	b := binding(succeeded, "a", "b")
	b.Spec.Suspension = &workv1alpha2.Suspension{}
	b.Spec.Suspension.Dispatching = ptr.To(true)
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "b", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	want := []rollup.ClusterPart{
		{Name: "a", State: rollup.Progressing, Reason: "never sent: dispatching is suspended", Suspended: true, Replicas: 5}, {Name: "b", Suspended: true, Replicas: 5},
	}
	if diff := cmp.Diff(want, rollup.PartOf(template("Deployment"), b, nil, nil).Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// TestSuspendedWork checks that a version which is kept from a cluster counts as
// not there, with that reason.
func TestSuspendedWork(t *testing.T) {
	w := work("a", "True", "", workv1alpha2.ResourceHealthy, `{}`)
	w.Spec.SuspendDispatching = ptr.To(true)
	w.Generation = 2
	for i := range w.Status.Conditions {
		w.Status.Conditions[i].ObservedGeneration = 1
	}
	state, reason := rollup.PartOf(template("Deployment"), binding(succeeded, "a"), []*workv1alpha1.Work{w}, nil).Worst(nil)
	if want := "a: latest version not sent: dispatching is suspended"; state != rollup.Progressing || reason != want {
		t.Errorf("health = %v %q, want %v %q", state, reason, rollup.Progressing, want)
	}
}

// TestRemovedWhileSuspended checks that an object that somebody removes while
// changes are kept from the cluster stays away, and is neither healthy nor waited
// for.
func TestRemovedWhileSuspended(t *testing.T) {
	w := work("a", "True", "", "", "")
	w.Spec.SuspendDispatching = ptr.To(true)
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDrifted, Status: metav1.ConditionTrue, Message: "Deployment shop/web was removed"})
	b := binding(succeeded, "a")
	b.Spec.Suspension = &workv1alpha2.Suspension{}
	b.Spec.Suspension.Dispatching = ptr.To(true)
	b.Status = rollup.Status(b, rollup.Report{Works: []*workv1alpha1.Work{w}, Now: at.Time})
	for by, works := range map[string][]*workv1alpha1.Work{"by its Works": {w}, "by its binding": nil} {
		want := []rollup.ClusterPart{{Name: "a", State: rollup.Progressing, Reason: rollup.Strayed + "Deployment shop/web was removed", Suspended: true, Strayed: true, Replicas: 5, Applied: works != nil}}
		got := rollup.PartOf(template("Deployment"), b, works, nil).Clusters
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", by, diff)
		}
		if got[0].KeptBack() {
			t.Errorf("%s: all that is said is that changes are kept from it", by)
		}
	}
}

// TestWhatATerminalWouldObey checks that control characters in a cluster's
// messages do not get into the binding.
func TestWhatATerminalWouldObey(t *testing.T) {
	refused := work("a", "False", "no\aquota\u202eyas \x1b[2J", "", "")
	b := binding(succeeded, "a")
	b.Status = rollup.Status(b, rollup.Report{Works: []*workv1alpha1.Work{refused}, Now: at.Time})
	if got, want := b.Status.AggregatedStatus[0].AppliedMessage, `no\u0007quota\u202eyas \u001b[2J`; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

// TestWhatAnAddressHolds checks that credentials in what a cluster's agent writes get neither into the binding nor to a
// commit, also where the text is cut.
func TestWhatAnAddressHolds(t *testing.T) {
	refused := work("a", "False", "GET https://bob:hunter2@reg.example/v2?token=hunter2: 401", "", "")
	b := binding(succeeded, "a")
	b.Status = rollup.Status(b, rollup.Report{Works: []*workv1alpha1.Work{refused}, Now: at.Time})
	if got, want := b.Status.AggregatedStatus[0].AppliedMessage, "GET https://reg.example/v2: 401"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
	const long = "GET https://hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2hunter2@reg.example/v2?token=hunter2: 401"
	failing := work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"conditions":[{"type":"Ready","status":"False","reason":"Refused","message":"`+long+`"}]}`)
	waiting := work("a", "True", "", workv1alpha2.ResourceUnhealthy, "{}")
	waiting.Status.Conditions = append(waiting.Status.Conditions, metav1.Condition{
		Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: "ErrImagePull", Message: long, ObservedGeneration: waiting.Generation,
	})
	for what, w := range map[string]*workv1alpha1.Work{"its status": failing, "its Pods": waiting} {
		got := rollup.Revision([]rollup.Part{rollup.PartOf(template("Deployment"), b, []*workv1alpha1.Work{w}, nil)}).Description
		if strings.Contains(got, "hunter2") || !strings.Contains(got, "GET https://reg.example/v2: 401") {
			t.Errorf("of %s it says %q", what, got)
		}
	}
}

// TestWhatKeepsAClusterFromAWork checks that the reason why a cluster has no Work
// is reported as a failure wherever the binding is shown, and goes once there is
// a Work.
func TestWhatKeepsAClusterFromAWork(t *testing.T) {
	b := binding(succeeded, "a", "b")
	b.Annotations[propagation.ClusterFaultsAnnotation] = propagation.ClusterFaults{"b": "override policy shop/x: no", "left": "it is not of the placement"}.Text()
	works := []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"availableReplicas":1}`)}
	b.Status = rollup.Status(b, rollup.Report{Works: works, Now: at.Time})
	for by, works := range map[string][]*workv1alpha1.Work{"by its Works": works, "by its binding": nil} {
		want := []rollup.ClusterPart{{Name: "a", Replicas: 5, Applied: works != nil}, {Name: "b", Replicas: 5, State: rollup.Failed, Reason: "override policy shop/x: no", Outdated: works != nil}}
		if diff := cmp.Diff(want, rollup.PartOf(template("Deployment"), b, works, nil).Clusters); diff != "" {
			t.Errorf("%s (-want +got):\n%s", by, diff)
		}
	}
	works = append(works, work("b", "True", "", workv1alpha2.ResourceHealthy, `{"availableReplicas":1}`))
	if got := rollup.PartOf(template("Deployment"), b, works, nil).Clusters[1]; got.State != rollup.Healthy {
		t.Errorf("with a Work it is told as %+v", got)
	}
}
