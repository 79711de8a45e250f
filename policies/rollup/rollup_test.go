package rollup_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// work returns the Work of a cluster: applied is "True", "False" or empty for not
// yet, with its message, health and status.
func work(cluster, applied, message string, health workv1alpha2.ResourceHealth, status string) *workv1alpha1.Work {
	w := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + cluster, Name: "web-1", Generation: 2}}
	if applied != "" {
		w.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: metav1.ConditionStatus(applied), Message: message, ObservedGeneration: 2}}
	}
	if health != "" {
		m := workv1alpha1.ManifestStatus{Health: health}
		if status != "" {
			m.Status = &runtime.RawExtension{Raw: []byte(status)}
		}
		w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{m}
	}
	return w
}

func TestItems(t *testing.T) {
	leaving := work("c", "True", "", workv1alpha2.ResourceHealthy, "")
	leaving.DeletionTimestamp = &metav1.Time{}
	stray := work("x", "True", "", "", "")
	stray.Namespace = "elsewhere"
	faulty := work("e", "True", "", workv1alpha2.ResourceHealthy, "")
	faulty.Annotations = map[string]string{propagation.FaultAnnotation: "override x"}
	late := work("l", "True", "", workv1alpha2.ResourceHealthy, "")
	got := rollup.Items([]*workv1alpha1.Work{faulty, late,
		work("b", "False", "no such namespace", "", ""), leaving, stray, work("a", "True", "fine", workv1alpha2.ResourceHealthy, `{"replicas":1}`), work("d", "", "", "", ""),
	}, func(w *workv1alpha1.Work) bool { return w == late || w.Namespace == "karmada-es-b" || w == faulty })
	want := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "a", Applied: true, Health: workv1alpha2.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}},
		{ClusterName: "b", AppliedMessage: "no such namespace", Health: workv1alpha2.ResourceUnknown},
		{ClusterName: "d", Health: workv1alpha2.ResourceUnknown},
		{ClusterName: "e", AppliedMessage: "override x", Health: workv1alpha2.ResourceHealthy},
		{ClusterName: "l", AppliedMessage: rollup.Overdue, Health: workv1alpha2.ResourceHealthy},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestBehind(t *testing.T) {
	cases := map[string]struct {
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"the latest version went well":              {func(*workv1alpha1.Work) {}, false},
		"nothing is known of the latest":            {func(w *workv1alpha1.Work) { w.Generation = 3 }, true},
		"the version before did not go well either": {func(w *workv1alpha1.Work) { w.Generation, w.Status.Conditions[0].Status = 3, "False" }, true},
		"nothing is known of any":                   {func(w *workv1alpha1.Work) { w.Status.Conditions = nil }, false},
		"its reporter names no versions":            {func(w *workv1alpha1.Work) { w.Status.Conditions[0].ObservedGeneration = 0 }, false},
		"its dispatching is suspended":              {func(w *workv1alpha1.Work) { w.Generation, w.Spec.SuspendDispatching = 3, ptr.To(true) }, false},
		"it is being deleted":                       {func(w *workv1alpha1.Work) { w.Generation, w.DeletionTimestamp = 3, &metav1.Time{} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := work("a", "True", "", workv1alpha2.ResourceHealthy, "")
			tc.change(w)
			if got := rollup.Behind(w); got != tc.want {
				t.Errorf("behind %t", got)
			}
		})
	}
}

func TestFullyApplied(t *testing.T) {
	item := func(cluster string, applied bool) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied}
	}
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters:   []workv1alpha2.TargetCluster{{Name: "a"}},
		RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "b"}, {Name: "a"}}}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "c", PurgeMode: policyv1alpha1.PurgeModeGracefully}, {FromCluster: "d", PurgeMode: policyv1alpha1.PurgeModeDirectly},
		},
	}
	cases := map[string]struct {
		spec  *workv1alpha2.ResourceBindingSpec
		items []workv1alpha2.AggregatedStatusItem
		want  metav1.ConditionStatus
	}{
		"all that should, and no other":     {spec, []workv1alpha2.AggregatedStatusItem{item("a", true), item("b", true), item("c", true)}, metav1.ConditionTrue},
		"one has not applied it":            {spec, []workv1alpha2.AggregatedStatusItem{item("a", true), item("b", false), item("c", true)}, metav1.ConditionFalse},
		"one is missing":                    {spec, []workv1alpha2.AggregatedStatusItem{item("a", true), item("c", true)}, metav1.ConditionFalse},
		"one too many":                      {spec, []workv1alpha2.AggregatedStatusItem{item("a", true), item("b", true), item("c", true), item("d", true)}, metav1.ConditionFalse},
		"placed nowhere is applied nowhere": {&workv1alpha2.ResourceBindingSpec{}, nil, metav1.ConditionFalse},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := rollup.FullyApplied(tc.spec, tc.items); got.Status != tc.want {
				t.Errorf("status = %v, want %v", got.Status, tc.want)
			}
		})
	}
}

func binding(record placement.Record, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Generation: 4,
		Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p"},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	b.Spec.Replicas = 5
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: 5})
	}
	if record.Reason != "" {
		b.Annotations = placement.Decision{Record: record, AppliedPlacement: "{}"}.Annotations()
	}
	return b
}

var (
	at        = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	succeeded = placement.Record{Reason: "Success", Message: "Binding has been scheduled successfully.", AffinityName: "home", At: at}
)

func TestStatus(t *testing.T) {
	later := at.Add(time.Hour)
	unfit := placement.Record{Reason: "NoClusterFit", Message: "0/1 clusters are available: 1 cluster(s) are full.", At: at}
	lost := unfit
	lost.At, lost.Placed = metav1.NewTime(later), &at
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(later)}
	}
	notApplied := condition("FullyApplied", metav1.ConditionFalse, "FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")
	cases := map[string]struct {
		binding *workv1alpha2.ResourceBinding
		works   []*workv1alpha1.Work
		want    workv1alpha2.ResourceBindingStatus
	}{
		"a binding that nobody has decided about": {
			binding: binding(placement.Record{}),
			want:    workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{notApplied}},
		},
		"one for which no cluster fits": {
			binding: binding(unfit),
			want: workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{
				condition("Scheduled", metav1.ConditionFalse, unfit.Reason, unfit.Message), notApplied,
			}},
		},
		"one that was placed before no cluster fitted any more": {
			binding: binding(lost),
			want: workv1alpha2.ResourceBindingStatus{LastScheduledTime: &at, Conditions: []metav1.Condition{
				condition("Scheduled", metav1.ConditionFalse, lost.Reason, lost.Message), notApplied,
			}},
		},
		"one that is placed, applied and settled": {
			binding: func() *workv1alpha2.ResourceBinding {
				b := binding(succeeded, "a")
				b.Spec.SchedulerName = "somebody"
				return b
			}(),
			works: []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, "")},
			want: workv1alpha2.ResourceBindingStatus{
				LastScheduledTime: &at, SchedulerObservedAffinityName: "home",
				Conditions: []metav1.Condition{
					condition("Scheduled", metav1.ConditionTrue, "Success", succeeded.Message),
					condition("FullyApplied", metav1.ConditionTrue, "FullyAppliedSuccess", "All works have been successfully applied"),
				},
				AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Applied: true, Health: workv1alpha2.ResourceHealthy}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rollup.Status(tc.binding, rollup.Report{Works: tc.works, Now: later})
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApproxTime(0)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			tc.binding.Status = got
			again := rollup.Status(tc.binding, rollup.Report{Works: tc.works, Now: later.Add(time.Hour)})
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same status is dated anew:\n%s", diff)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	digest, err := propagation.Digest(template("Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	annotate := func(b *workv1alpha2.ResourceBinding, d string) *workv1alpha2.ResourceBinding {
		metav1.SetMetaDataAnnotation(&b.ObjectMeta, propagation.DigestAnnotation, d)
		return b
	}
	stamp := func(w *workv1alpha1.Work, d string) *workv1alpha1.Work {
		w.Annotations = map[string]string{propagation.DigestAnnotation: d}
		return w
	}
	const current = `{"replicas":5,"updatedReplicas":5,"readyReplicas":5,"resourceTemplateGeneration":3}`
	faulty := stamp(work("a", "True", "", workv1alpha2.ResourceHealthy, current), digest)
	faulty.Annotations[propagation.FaultAnnotation] = "override x"
	behind := work("a", "True", "", workv1alpha2.ResourceHealthy, "")
	behind.Generation = 3
	edition, err := propagation.Edition(template("Deployment"))
	if err != nil {
		t.Fatal(err)
	}
	lazy := annotate(binding(succeeded, "a"), "other")
	lazy.Annotations[propagation.EditionAnnotation] = edition
	cases := map[string]struct {
		kind       string
		binding    workv1alpha2.Binding
		works      []*workv1alpha1.Work
		wantState  rollup.State
		wantReason string
	}{
		"what no policy carries is fine where it is":         {"Deployment", nil, nil, rollup.Healthy, ""},
		"not decided about":                                  {"Deployment", binding(placement.Record{}), nil, rollup.Progressing, "waits to be placed"},
		"no cluster fits":                                    {"Deployment", binding(placement.Record{Reason: "NoClusterFit", Message: "0/0"}), nil, rollup.Failed, "0/0"},
		"no room for now":                                    {"Deployment", binding(placement.Record{Reason: "Unschedulable", Message: "full"}), nil, rollup.Progressing, "full"},
		"an older template is placed":                        {"Deployment", claimed(annotate(binding(succeeded, "a"), "other")), nil, rollup.Progressing, "waits to be taken up by its policy"},
		"an older template is placed, by no policy now":      {"Deployment", annotate(binding(succeeded, "a"), "other"), nil, rollup.Progressing, "no policy carries it any more: its latest version stays on the control plane"},
		"an older template is placed, as a quota refuses it": {"Deployment", claimed(annotate(binding(placement.Record{Reason: "QuotaExceeded", Message: "held back: full"}, "a"), "other")), nil, rollup.Progressing, "held back: full"},
		"an older template is placed, lazily":                {"Deployment", lazy, nil, rollup.Progressing, "a: not sent yet"},
		"no Work yet":                                        {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{}, rollup.Progressing, "a: not sent yet"},
		"a Work of an older template":                        {"Deployment", annotate(binding(succeeded, "a"), digest), []*workv1alpha1.Work{stamp(work("a", "True", "", workv1alpha2.ResourceHealthy, current), "other")}, rollup.Progressing, "a: latest version not sent yet"},
		"a Work of this one":                                 {"Deployment", annotate(binding(succeeded, "a"), digest), []*workv1alpha1.Work{stamp(work("a", "True", "", workv1alpha2.ResourceHealthy, current), digest)}, rollup.Healthy, ""},
		"a Work that could not be made anew":                 {"Deployment", annotate(binding(succeeded, "a"), digest), []*workv1alpha1.Work{faulty}, rollup.Failed, "a: override x"},
		"a Work that has changed since it was applied":       {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{behind}, rollup.Progressing, "a: latest version not applied yet"},
		"not applied yet":                                    {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "", "", "", "")}, rollup.Progressing, "a: not applied yet"},
		"its namespace is being deleted there":               {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "False", "waits, as Namespace shop is being deleted in the cluster: it is made once it is gone", "", "")}, rollup.Progressing, "a: waits, as Namespace shop is being deleted in the cluster: it is made once it is gone"},
		"refused by the member":                              {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "False", "denied", "", "")}, rollup.Failed, "a: denied"},
		"a status about an older template":                   {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"replicas":5,"resourceTemplateGeneration":2}`)}, rollup.Progressing, "a: latest version not seen yet 0/5"},
		"not ready":                                          {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":2,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: not ready 2/5"},
		"not ready, as no Pods can be made":                  {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":2,"resourceTemplateGeneration":3,"conditions":[{"type":"Available","status":"False","message":"no minimum"},{"type":"ReplicaFailure","status":"True","reason":"FailedCreate","message":"pods \"web-x\" is forbidden:\n exceeded quota: shop"}]}`)}, rollup.Progressing, "a: not ready 2/5: FailedCreate: pods \"web-x\" is forbidden: exceeded quota: shop"},
		"not ready, and its deadline is over":                {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":2,"resourceTemplateGeneration":3,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"ReplicaSet \"web-x\" has timed out progressing."}]}`)}, rollup.Progressing, "a: not ready 2/5: ProgressDeadlineExceeded"},
		"not ready, and only on its way":                     {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":2,"resourceTemplateGeneration":3,"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable","message":"no"},{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"},{"type":"ReplicaFailure","status":"False","reason":"x"}]}`)}, rollup.Progressing, "a: not ready 2/5"},
		"not ready, as its operator says":                    {"ConfigMap", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"conditions":[{"type":"Ready","status":"False","reason":"NoCredentials","message":"secret x is missing"}]}`)}, rollup.Progressing, "a: not ready: NoCredentials: secret x is missing"},
		"ready, of the version before":                       {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":5,"availableReplicas":5,"updatedReplicas":2,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: not ready: 5/5 ready, 2/5 of the latest version"},
		"ready, and some are to end":                         {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":7,"readyReplicas":7,"availableReplicas":7,"updatedReplicas":5,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: not ready: 7/5 ready, 2 more to end"},
		"ready for too short a while":                        {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":5,"availableReplicas":3,"updatedReplicas":5,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: not ready: 5/5 ready, 3/5 available"},
		"ready, before its controller has looked":            {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"replicas":5,"readyReplicas":5,"availableReplicas":5,"updatedReplicas":5,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: not ready: 5/5 ready, the latest change not seen yet"},
		"old replicas serve in place of new ones":            {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"replicas":2,"updatedReplicas":1,"readyReplicas":1,"resourceTemplateGeneration":3}`)}, rollup.Progressing, "a: still runs 1 replica of the version before"},
		"health not known":                                   {"Deployment", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnknown, "")}, rollup.Progressing, "a: health not known yet"},
		"what failed is told before what is on its way":      {"Deployment", binding(succeeded, "a", "b"), []*workv1alpha1.Work{work("a", "", "", "", ""), work("b", "False", "denied", "", "")}, rollup.Failed, "b: denied"},
		"a job that runs":                                    {"Job", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"active":1}`)}, rollup.Progressing, "a: job is running"},
		"a job that failed":                                  {"Job", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Failed","status":"True"}]}`)}, rollup.Failed, "a: job failed"},
		"a job that is done":                                 {"Job", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, `{"conditions":[{"type":"Complete","status":"True"}]}`)}, rollup.Healthy, ""},
		"a pod that failed":                                  {"Pod", binding(succeeded, "a"), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceUnhealthy, `{"phase":"Failed"}`)}, rollup.Failed, "a: pod failed"},
		"a binding that nobody schedules but others need": {"Deployment", func() workv1alpha2.Binding {
			b := binding(placement.Record{})
			b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "a"}}}}
			return b
		}(), []*workv1alpha1.Work{work("a", "True", "", workv1alpha2.ResourceHealthy, "")}, rollup.Healthy, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state, reason := rollup.PartOf(template(tc.kind), tc.binding, tc.works, nil).Worst(nil)
			if state != tc.wantState || reason != tc.wantReason {
				t.Errorf("health = %v %q, want %v %q", state, reason, tc.wantState, tc.wantReason)
			}
		})
	}
}

// TestASilentCluster checks that the last report of a silent cluster does not
// count as current, good or bad, and is shown with the time since which the
// cluster has been silent.
func TestASilentCluster(t *testing.T) {
	const ready = `{"replicas":5,"updatedReplicas":5,"readyReplicas":5,"resourceTemplateGeneration":3}`
	silence := rollup.Silence{Cause: "unreachable", Since: at.Time}
	of := func(last string, w *workv1alpha1.Work) {
		t.Helper()
		part := rollup.PartOf(template("Deployment"), binding(succeeded, "a"), []*workv1alpha1.Work{w}, rollup.Silences{"a": silence, "z": silence})
		want := []rollup.ClusterPart{{Name: "a", State: rollup.Unknown, Reason: "unreachable since 2026-01-01 00:00 UTC; last heard: " + last, Silence: &silence}}
		if diff := cmp.Diff(want, part.Clusters); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	of("healthy", work("a", "True", "", workv1alpha2.ResourceHealthy, ready))
	of("denied", work("a", "False", "denied", "", ""))
	recalled := work("a", "True", "", workv1alpha2.ResourceHealthy, ready)
	recalled.DeletionTimestamp, recalled.Annotations = &at, map[string]string{workv1alpha2.WantedAgainAnnotation: workv1alpha2.WantedAgain}
	of("it was there, and stays: its removal was recalled", recalled)
}

func TestSilenceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		want   string
		unread metav1.ConditionStatus
	}{
		"nobody has looked yet":       {status: "", reason: "", want: ""},
		"it is ready":                 {status: metav1.ConditionTrue, reason: "ClusterReady", want: ""},
		"it does not answer":          {status: metav1.ConditionFalse, reason: "ClusterNotReachable", want: "unreachable for 3m"},
		"its agent is silent":         {status: metav1.ConditionUnknown, reason: "ClusterStatusUnknown", want: "not heard of for 3m"},
		"it is another hub's":         {status: metav1.ConditionFalse, reason: "ClaimedByAnotherHub", want: "claimed by another control plane, not ready for 3m"},
		"it refuses us":               {status: metav1.ConditionFalse, reason: "CredentialsRefused", want: "refusing the credentials, not ready for 3m"},
		"it is back":                  {status: metav1.ConditionFalse, reason: "AnswersAgain", want: "answering again, not ready for 3m"},
		"it answers, but not well":    {status: metav1.ConditionFalse, reason: "ClusterNotReady", want: "not ready for 3m"},
		"its objects cannot be read":  {status: metav1.ConditionTrue, unread: metav1.ConditionTrue, want: "not to be read in full for 3m"},
		"its objects are read again":  {status: metav1.ConditionTrue, unread: metav1.ConditionFalse},
		"it does not answer any more": {status: metav1.ConditionFalse, reason: "ClusterNotReachable", unread: metav1.ConditionTrue, want: "unreachable for 3m"},
		"of a reason of others":       {status: metav1.ConditionFalse, reason: "Elsewhere", want: "not ready for 3m"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{}
			if tc.status != "" {
				c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: tc.status, Reason: tc.reason, LastTransitionTime: at}}
			}
			if tc.unread != "" {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "ObjectsUnread", Status: tc.unread, LastTransitionTime: at})
			}
			got := ""
			if s, silent := rollup.SilenceOf(c); silent {
				got = s.For(at.Add(3 * time.Minute))
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRevision(t *testing.T) {
	silent := func(name string) rollup.ClusterPart {
		return rollup.ClusterPart{Name: name, State: rollup.Unknown, Silence: &rollup.Silence{Cause: "unreachable", Since: at.Time}}
	}
	ok := func(name string) rollup.ClusterPart { return rollup.ClusterPart{Name: name} }
	bad := func(name string, s rollup.State, reason string) rollup.ClusterPart {
		return rollup.ClusterPart{Name: name, State: s, Reason: reason}
	}
	cases := map[string]struct {
		parts []rollup.Part
		want  rollup.Rollup
	}{
		"nothing":     {nil, rollup.Rollup{State: "success", Description: "applied; nothing goes to clusters"}},
		"all is well": {[]rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{ok("a"), ok("b")}}}, rollup.Rollup{State: "success", Description: "2/2 clusters ready", Ready: 2, Total: 2}},
		"one that is ready waits for something else": {[]rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{bad("b", rollup.Progressing, "not ready: 1/1 ready, 0/1 of the latest version")}}}, rollup.Rollup{State: "pending", Description: "0/1 clusters ready: b waits for Deployment shop/web: 1/1 ready, 0/1 of the latest version", Total: 1}},
		"one is on its way, and says why not":        {[]rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{bad("b", rollup.Progressing, "not ready 2/5: FailedCreate: exceeded quota: shop")}}}, rollup.Rollup{State: "pending", Description: "0/1 clusters ready: b waits for Deployment shop/web 2/5: FailedCreate: exceeded quota: shop", Total: 1}},
		"one is on its way":                          {[]rollup.Part{{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{ok("a"), bad("b", rollup.Progressing, "not ready 2/5")}}}, rollup.Rollup{State: "pending", Description: "1/2 clusters ready: b waits for Deployment shop/web 2/5", Ready: 1, Total: 2}},
		"a cluster is ready when all it holds is": {[]rollup.Part{
			{Object: "Deployment shop/web", Clusters: []rollup.ClusterPart{ok("a")}}, {Object: "Job shop/x", Clusters: []rollup.ClusterPart{bad("a", rollup.Progressing, "job is running")}},
		}, rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Job shop/x: job is running", Total: 1}},
		"a failure is told first, by cluster": {[]rollup.Part{
			{Object: "A", Clusters: []rollup.ClusterPart{bad("a", rollup.Progressing, "not ready"), bad("c", rollup.Failed, "late")}}, {Object: "B", Clusters: []rollup.ClusterPart{bad("b", rollup.Failed, "denied")}},
		}, rollup.Rollup{State: "failure", Description: "0/3 clusters ready: b failed on B: denied", Total: 3}},
		"what the hub says comes first": {[]rollup.Part{
			{Object: "A", State: rollup.Failed, Reason: "no cluster fits"}, {Object: "B", Clusters: []rollup.ClusterPart{ok("a"), bad("b", rollup.Failed, "x")}},
		}, rollup.Rollup{State: "failure", Description: "A: no cluster fits", Ready: 1, Total: 2}},
		"a cluster that is silent is told once, whatever it runs": {[]rollup.Part{
			{Object: "A", Clusters: []rollup.ClusterPart{ok("a"), silent("b"), bad("c", rollup.Progressing, "not ready")}}, {Object: "B", Clusters: []rollup.ClusterPart{ok("a"), silent("b")}},
		}, rollup.Rollup{State: "pending", Description: "1/3 clusters ready: b unreachable since 2026-01-01 00:00 UTC", Ready: 1, Total: 3}},
		"a cluster that may yet join is waited for": {[]rollup.Part{
			{Object: "A", Clusters: []rollup.ClusterPart{ok("a")}, Absent: []propagation.Stranger{{Name: "mars"}}},
		}, rollup.Rollup{State: "pending", Description: "A: clusterNames names mars, which does not exist", Ready: 1, Total: 1}},
		"a cluster whose name is mistyped fails": {[]rollup.Part{
			{Object: "A", Clusters: []rollup.ClusterPart{ok("a"), bad("b", rollup.Progressing, "not ready")}, Absent: []propagation.Stranger{{Name: "mars"}, {Name: "wst", Meant: "west"}}},
		}, rollup.Rollup{State: "failure", Description: "A: clusterNames names mars, which does not exist; wst, which does not exist (did you mean west?)", Ready: 1, Total: 2}},
		"what fits nowhere, as its cluster is mistyped": {[]rollup.Part{
			{Object: "A", State: rollup.Failed, Reason: "0/2 clusters are available: 2 did not match.", Absent: []propagation.Stranger{{Name: "wst", Meant: "west"}}},
		}, rollup.Rollup{State: "failure", Description: "A: clusterNames names wst, which does not exist (did you mean west?); 0/2 clusters are available: 2 did not match."}},
		"what fits nowhere, and may do once another cluster joins": {[]rollup.Part{
			{Object: "A", State: rollup.Failed, Reason: "0/2 clusters are available: 2 did not match.", Absent: []propagation.Stranger{{Name: "mars"}}},
		}, rollup.Rollup{State: "failure", Description: "A: clusterNames names mars, which does not exist; 0/2 clusters are available: 2 did not match."}},
		"a failure counts for more than silence": {[]rollup.Part{
			{Object: "A", Clusters: []rollup.ClusterPart{silent("a"), bad("b", rollup.Failed, "denied")}},
		}, rollup.Rollup{State: "failure", Description: "0/2 clusters ready: b failed on A: denied", Total: 2}},
		"claims that stay elsewhere are told of": {[]rollup.Part{
			{Object: "PersistentVolumeClaim shop/data", Clusters: []rollup.ClusterPart{ok("a")}, Kept: []string{"b", "c"}},
		}, rollup.Rollup{State: "success", Description: "1/1 clusters ready; claim shop/data stays in b (and 1 more): flotilla prune --cluster b removes it", Ready: 1, Total: 1}},
		"a claim that nobody carries any more": {[]rollup.Part{
			{Object: "PersistentVolumeClaim shop/data", Kept: []string{"b"}},
		}, rollup.Rollup{State: "success", Description: "applied; nothing goes to clusters; claim shop/data stays in b: flotilla prune --cluster b removes it"}},
		"what is on its way is told before claims that stay": {[]rollup.Part{
			{Object: "PersistentVolumeClaim shop/data", Clusters: []rollup.ClusterPart{bad("a", rollup.Progressing, "not sent yet")}, Kept: []string{"b"}},
		}, rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for PersistentVolumeClaim shop/data: not sent yet", Total: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rollup.Revision(tc.parts)); diff != "" {
				t.Errorf("rollup (-want +got):\n%s", diff)
			}
			reversed := make([]rollup.Part, 0, len(tc.parts))
			for i := len(tc.parts) - 1; i >= 0; i-- {
				reversed = append(reversed, tc.parts[i])
			}
			if diff := cmp.Diff(tc.want, rollup.Revision(reversed)); diff != "" {
				t.Errorf("the order of parts matters:\n%s", diff)
			}
		})
	}
}

// FuzzSanitise checks that, whatever a member reports, the result is one short
// line of valid text.
func FuzzSanitise(f *testing.F) {
	f.Add("fine")
	f.Add("two\nlines\r\tand\x00more \u202e evil")
	f.Add(strings.Repeat("é", 300))
	f.Add("\xff\xfe")
	f.Fuzz(func(t *testing.T, s string) {
		got := rollup.Sanitise(s)
		if utf8.RuneCountInString(got) > rollup.MaxDescription || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x00\u202e") {
			t.Errorf("%q", got)
		}
		if again := rollup.Sanitise(got); again != got {
			t.Errorf("twice is not once: %q, %q", got, again)
		}
	})
}

// TestShown checks that an object that waits is not healthy to people, and may
// stay.
func TestShown(t *testing.T) {
	const well, unwell = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	for name, tc := range map[string]struct {
		health workv1alpha2.ResourceHealth
		status string
		want   workv1alpha2.ResourceHealth
	}{
		"what waits":                        {well, `{"state":"Pending","resourceWaiting":true}`, unwell},
		"what does not":                     {well, `{"state":"Running","resourceWaiting":false}`, well},
		"what says so of something within":  {well, `{"part":{"resourceWaiting":true}}`, well},
		"what says something else there":    {well, `{"resourceWaiting":"later"}`, well},
		"what reports no object":            {well, `"resourceWaiting"`, well},
		"what reports nothing":              {well, ``, well},
		"what fails":                        {unwell, `{}`, unwell},
		"what nobody knows anything of yet": {workv1alpha2.ResourceUnknown, `{"resourceWaiting":true}`, workv1alpha2.ResourceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var status *runtime.RawExtension
			if tc.status != "" {
				status = &runtime.RawExtension{Raw: []byte(tc.status)}
			}
			if got := rollup.Shown(tc.health, status); got != tc.want {
				t.Errorf("shown as %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWaiting checks that a job in a queue keeps a commit status from success and
// its old cluster from being left, although its reported health is Healthy.
func TestWaiting(t *testing.T) {
	queued := work("a", "True", "", workv1alpha2.ResourceHealthy, `{"state":{"phase":"Pending"},"resourceWaiting":true}`)
	runs := work("a", "True", "", workv1alpha2.ResourceHealthy, `{"state":{"phase":"Running"}}`)
	type outcome struct {
		State  rollup.State
		Reason string
		Ready  bool
		Wire   workv1alpha2.ResourceHealth
	}
	for name, tc := range map[string]struct {
		work *workv1alpha1.Work
		want outcome
	}{
		"queued": {queued, outcome{rollup.Progressing, "a: queued, starting or held", false, workv1alpha2.ResourceHealthy}},
		"runs":   {runs, outcome{rollup.Healthy, "", true, workv1alpha2.ResourceHealthy}},
	} {
		t.Run(name, func(t *testing.T) {
			works := []*workv1alpha1.Work{tc.work}
			got := outcome{Ready: rollup.Ready(tc.work), Wire: rollup.Items(works, nil)[0].Health}
			got.State, got.Reason = rollup.PartOf(template("Crew"), binding(succeeded, "a"), works, nil).Worst(nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNowhere checks that a template that should be in no cluster has its own
// generation, and one that waits for a cluster the generation that was observed
// last.
func TestNowhere(t *testing.T) {
	web := template("Deployment")
	web.Object["status"] = map[string]any{"observedGeneration": int64(1)}
	fresh := template("Deployment")
	behind := binding(placement.Record{Reason: "Success"})
	behind.Annotations[propagation.DigestAnnotation] = "another"
	for name, tc := range map[string]struct {
		template *unstructured.Unstructured
		binding  *workv1alpha2.ResourceBinding
		want     int64
	}{
		"one that is to stand nowhere":                {web, binding(placement.Record{Reason: "Success"}), web.GetGeneration()},
		"one that no cluster fits":                    {web, binding(placement.Record{Reason: workv1alpha2.BindingReasonNoClusterFit}), 1},
		"one that no cluster fits, and none ever did": {fresh, binding(placement.Record{Reason: workv1alpha2.BindingReasonNoClusterFit}), 0},
		"one whose binding is of an older edition":    {web, behind, 1},
	} {
		t.Run(name, func(t *testing.T) {
			was := tc.template.DeepCopy()
			if got := rollup.Nowhere(tc.template, tc.binding).GetGeneration(); got != tc.want {
				t.Errorf("generation %d, want %d", got, tc.want)
			}
			if diff := cmp.Diff(was, tc.template); diff != "" {
				t.Errorf("the template that came in was changed:\n%s", diff)
			}
		})
	}
}

// TestObservedGeneration checks that a generation counts as observed once nothing
// is left to decide about it.
func TestObservedGeneration(t *testing.T) {
	member := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	member.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
	snap := placement.NewSnapshot([]*clusterv1alpha1.Cluster{member})
	b := binding(placement.Record{}, "a")
	decision, _ := placement.Decide(b, placement.Situation{Clusters: snap, Now: at.Time}, placement.Options{})
	b.Annotations, b.Spec.Clusters = decision.Annotations(), decision.Clusters
	if got := rollup.Status(b, rollup.Report{Now: at.Time}); got.SchedulerObservedGeneration != 4 {
		t.Errorf("observed generation %d, want 4", got.SchedulerObservedGeneration)
	}
	b.Spec.Replicas, b.Generation = 9, 5
	b.Status.SchedulerObservedGeneration = 4
	if got := rollup.Status(b, rollup.Report{Now: at.Time}); got.SchedulerObservedGeneration != 4 {
		t.Errorf("observed generation %d before the decision, want 4", got.SchedulerObservedGeneration)
	}
}
