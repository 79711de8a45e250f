package rollup_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// etcdTakes is how large an object etcd stores by default, in bytes.
const etcdTakes = 1536 << 10

// many returns n clusters, their Works, and a binding that is placed in all of
// them.
func many(n int, say func(i int, cluster string) *workv1alpha1.Work) (*workv1alpha2.ResourceBinding, []*workv1alpha1.Work) {
	clusters, works := make([]string, n), make([]*workv1alpha1.Work, n)
	for i := range n {
		clusters[i] = fmt.Sprintf("member-%04d", i)
		works[i] = say(i, clusters[i])
	}
	return binding(succeeded, clusters...), works
}

// sized returns a status of about n bytes.
func sized(n int) string { return `{"replicas":1,"text":"` + strings.Repeat("x", max(0, n-24)) + `"}` }

func TestStatusFits(t *testing.T) {
	cases := map[string]struct {
		clusters int
		say      func(i int, cluster string) *workv1alpha1.Work
		// kept is how many raw statuses stay, and reported the binding's message
		// about it.
		kept     int
		reported string
	}{
		"a thousand clusters that each report a Deployment": {
			1000, func(_ int, c string) *workv1alpha1.Work {
				return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(300))
			}, 1000, "",
		},
		"three that each report as much as a member may": {
			3, func(_ int, c string) *workv1alpha1.Work {
				return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(256<<10))
			}, 3, "",
		},
		"a thousand that each report as much as a member may": {
			1000, func(_ int, c string) *workv1alpha1.Work {
				return work(c, "True", "", workv1alpha2.ResourceUnhealthy, sized(256<<10))
			}, 3, "the statuses of 997 of 1000 clusters are too large to be kept here and are in their Works: member-0000, member-0001, member-0002, member-0003, member-0004 and 992 more",
		},
		"a few that report much do not hide the others": {
			1000, func(i int, c string) *workv1alpha1.Work {
				if i%250 == 7 {
					return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(256<<10))
				}
				return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(300))
			}, 998, "the statuses of 2 of 1000 clusters are too large to be kept here and are in their Works: member-0007, member-0257",
		},
		"characters that are stored as six": {
			4, func(_ int, c string) *workv1alpha1.Work {
				return work(c, "True", "", workv1alpha2.ResourceHealthy, `{"a":"`+strings.Repeat("<", 100<<10)+`"}`)
			}, 1, "the statuses of 3 of 4 clusters are too large to be kept here and are in their Works: member-0000, member-0001, member-0002",
		},
		"five thousand that all refuse at length": {
			5000, func(_ int, c string) *workv1alpha1.Work {
				return work(c, "False", strings.Repeat("é", 9000), workv1alpha2.ResourceUnknown, "")
			}, 0, "",
		},
		"five thousand that all drift at length, and refuse what is new": {
			5000, func(_ int, c string) *workv1alpha1.Work {
				w := work(c, "False", strings.Repeat("é", 9000), workv1alpha2.ResourceUnknown, "")
				w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: "Drifted", Status: "True", Message: strings.Repeat("é", 2000)})
				return w
			}, 0, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, works := many(tc.clusters, tc.say)
			report := rollup.Report{Works: works, Now: at.Time}
			b.Status = rollup.Status(b, report)
			data, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			kept := 0
			for i, item := range b.Status.AggregatedStatus {
				if item.Status != nil {
					kept++
				}
				whole := rollup.Items(works[i:i+1], nil)[0]
				if item.ClusterName != whole.ClusterName || item.Applied != whole.Applied || item.Health != whole.Health || (item.AppliedMessage == "") != (whole.AppliedMessage == "") || (item.Drift == "") != (whole.Drift == "") {
					t.Fatalf("item %d is %v", i, item)
				}
			}
			reported := ""
			if c := meta.FindStatusCondition(b.Status.Conditions, "StatusTruncated"); c != nil {
				reported = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			want := tc.reported
			if want != "" {
				want = "True TooLarge " + want
			}
			if len(data) > etcdTakes || len(b.Status.AggregatedStatus) != tc.clusters || kept != tc.kept || reported != want {
				t.Errorf("%d bytes, %d clusters, %d statuses, %q", len(data), len(b.Status.AggregatedStatus), kept, reported)
			}
			slices.Reverse(works)
			if again := rollup.Status(b, report); !cmp.Equal(b.Status, again) {
				t.Error("the same again is another status")
			}
		})
	}
}

// TestStatusFitsCalmly checks that statuses whose sizes change a little do not
// replace each other in a binding.
func TestStatusFitsCalmly(t *testing.T) {
	left := func(jitter int) []string {
		b, works := many(1000, func(i int, c string) *workv1alpha1.Work {
			return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(1600+i%2*400+(i*7+jitter)%9))
		})
		var out []string
		for _, item := range rollup.Status(b, rollup.Report{Works: works, Now: at.Time}).AggregatedStatus {
			if item.Status == nil {
				out = append(out, item.ClusterName)
			}
		}
		return out
	}
	first := left(0)
	if len(first) == 0 || len(first) == 1000 {
		t.Fatalf("%d are left out", len(first))
	}
	for jitter := range 9 {
		if diff := cmp.Diff(first, left(jitter)); diff != "" {
			t.Fatalf("left out (-first +now):\n%s", diff)
		}
	}
}

// TestStatusBesideALargeSpec checks that the size of the rest of the binding
// counts.
func TestStatusBesideALargeSpec(t *testing.T) {
	b, works := many(200, func(_ int, c string) *workv1alpha1.Work {
		return work(c, "True", "", workv1alpha2.ResourceHealthy, sized(3000))
	})
	for range 100 {
		b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Name: "other", Clusters: b.Spec.Clusters})
	}
	b.Status = rollup.Status(b, rollup.Report{Works: works, Now: at.Time})
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, "StatusTruncated"); len(data) > etcdTakes || c == nil {
		t.Errorf("%d bytes, condition %v", len(data), c)
	}
	b.Spec.RequiredBy = nil
	if c := meta.FindStatusCondition(rollup.Status(b, rollup.Report{Works: works, Now: at.Time}).Conditions, "StatusTruncated"); c != nil {
		t.Errorf("condition once there is room again: %v", c)
	}
}

// TestJudgeWithoutStatus checks that a cluster whose status was left out is
// judged by its health.
func TestJudgeWithoutStatus(t *testing.T) {
	b := binding(succeeded, "a")
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Applied: true, Health: workv1alpha2.ResourceHealthy}}
	for truncated, want := range map[metav1.ConditionStatus]string{metav1.ConditionTrue: "Healthy ", metav1.ConditionFalse: "Progressing a: job is running"} {
		b.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.StatusTruncated, Status: truncated}}
		state, reason := rollup.PartOf(template("Job"), b, nil, nil).Worst(nil)
		if got := state.String() + " " + reason; got != want {
			t.Errorf("truncated %s: %q, want %q", truncated, got, want)
		}
	}
}

func TestConditionsOfClusters(t *testing.T) {
	say := func(cluster, kind, status, message string) *workv1alpha1.Work {
		w := work(cluster, "True", "", workv1alpha2.ResourceHealthy, "")
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Message: message})
		return w
	}
	leaving := say("z", "Drifted", "True", "x")
	leaving.DeletionTimestamp = &metav1.Time{}
	var legion, babel []*workv1alpha1.Work
	for i := range 1000 {
		legion = append(legion, say(fmt.Sprintf("m-%03d", i), "Interpreted", "False", "script line 3: nil"))
		babel = append(babel, say(fmt.Sprintf("m-%03d", i), "Interpreted", "False", fmt.Sprint(i, strings.Repeat("x", 4000))))
	}
	clipped := func(i int) string { return fmt.Sprint(i) + strings.Repeat("x", 512-len("…")-1) + "…" }
	cases := map[string]struct {
		works []*workv1alpha1.Work
		total rollup.Total
		was   []metav1.Condition
		want  []string
	}{
		"all is well": {works: []*workv1alpha1.Work{say("a", "Interpreted", "True", "")}},
		"one fails":   {works: []*workv1alpha1.Work{say("a", "Interpreted", "False", "health of X x: boom")}, want: []string{"Interpreted False InterpreterFailed a: health of X x: boom"}},
		"many fail alike": {works: legion, want: []string{
			"Interpreted False InterpreterFailed m-000, m-001, m-002, m-003, m-004 and 995 more: script line 3: nil"}},
		"many fail differently, at length": {works: babel, want: []string{
			"Interpreted False InterpreterFailed m-000: " + clipped(0) + "; m-001: " + clipped(1) + "; m-002: " + clipped(2) + "; and 997 more clusters"}},
		"the template's status fails, too": {works: legion[:1], total: rollup.Total{Fault: "aggregate status of X x: bang"}, want: []string{
			"Interpreted False InterpreterFailed aggregate status of X x: bang; m-000: script line 3: nil"}},
		"an answer is on its way, and nothing is known to fail": {total: rollup.Total{Pending: true}},
		"an answer is on its way, and what failed may still": {
			total: rollup.Total{Pending: true}, was: []metav1.Condition{{Type: "Interpreted", Status: "False", Reason: "InterpreterFailed", Message: "old"}},
			want: []string{"Interpreted False InterpreterFailed old"}},
		"what failed works again":      {was: []metav1.Condition{{Type: "Interpreted", Status: "False"}, {Type: "Drifted", Status: "True"}, {Type: "StatusTruncated", Status: "True"}}},
		"one differs":                  {works: []*workv1alpha1.Work{say("b", "Drifted", "False", "reverted"), say("a", "Drifted", "True", "spec.replicas")}, want: []string{"Drifted True DriftReported a: spec.replicas"}},
		"one differed":                 {works: []*workv1alpha1.Work{say("b", "Drifted", "False", "put back spec.replicas"), leaving}, want: []string{"Drifted False DriftReverted b: put back spec.replicas"}},
		"the template's is shortened":  {total: rollup.Total{Shortened: "half of it"}, want: []string{"StatusTruncated True TooLarge half of it"}},
		"other conditions are no news": {works: []*workv1alpha1.Work{say("a", "Available", "False", "x")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding(succeeded, "a")
			b.Status.Conditions = tc.was
			var got []string
			for _, c := range rollup.Status(b, rollup.Report{Works: tc.works, Total: tc.total, Now: at.Time}).Conditions {
				if c.Type != workv1alpha2.Scheduled && c.Type != workv1alpha2.FullyApplied {
					got = append(got, strings.TrimSpace(fmt.Sprint(c.Type, " ", c.Status, " ", c.Reason, " ", c.Message)))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestInterpretationAndDriftInHealth checks that an object for which the
// interpreter fails does not count as healthy, and that drift that is only
// reported is a note.
func TestInterpretationAndDriftInHealth(t *testing.T) {
	say := func(w *workv1alpha1.Work, kind, status, message string) *workv1alpha1.Work {
		w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Message: message})
		return w
	}
	const fine = `{"replicas":5,"updatedReplicas":5,"resourceTemplateGeneration":3}`
	behind := work("a", "True", "", workv1alpha2.ResourceHealthy, fine)
	behind.Generation = 3
	cases := map[string]struct {
		work *workv1alpha1.Work
		want rollup.Rollup
	}{
		"a rule fails for its status": {
			say(work("a", "True", "", workv1alpha2.ResourceUnknown, ""), "Interpreted", "False", "health of Deployment web: boom"),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web: health not known: health of Deployment web: boom", Total: 1},
		},
		"a rule fails before it is sent": {
			say(behind, "Interpreted", "False", "retain of Deployment web: boom"),
			rollup.Rollup{State: "pending", Description: "0/1 clusters ready: a waits for Deployment shop/web: latest version not sent: retain of Deployment web: boom", Total: 1},
		},
		"it differs, and that is only reported": {
			say(work("a", "True", "", workv1alpha2.ResourceHealthy, fine), "Drifted", "True", "spec.replicas is 7"),
			rollup.Rollup{State: "success", Description: "1/1 clusters ready; Deployment shop/web differs in a: spec.replicas is 7", Ready: 1, Total: 1},
		},
		"it differed and was put back": {
			say(work("a", "True", "", workv1alpha2.ResourceHealthy, fine), "Drifted", "False", "spec.replicas was 7"),
			rollup.Rollup{State: "success", Description: "1/1 clusters ready", Ready: 1, Total: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			part := rollup.PartOf(template("Deployment"), binding(succeeded, "a"), []*workv1alpha1.Work{tc.work}, nil)
			if diff := cmp.Diff(tc.want, rollup.Revision([]rollup.Part{part})); diff != "" {
				t.Errorf("rollup (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeveralManifests checks that the status of the template's own manifest is
// reported, and the worst health of all.
func TestSeveralManifests(t *testing.T) {
	of := func(ordinal int, health workv1alpha2.ResourceHealth, status string) workv1alpha1.ManifestStatus {
		m := work("a", "", "", health, status).Status.ManifestStatuses[0]
		m.Identifier.Ordinal = ordinal
		return m
	}
	const well, ill, unknown = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown
	cases := map[string]struct {
		statuses []workv1alpha1.ManifestStatus
		want     string
	}{
		"both are well":                {[]workv1alpha1.ManifestStatus{of(1, well, `{"b":1}`), of(0, well, `{"a":1}`)}, `Healthy {"a":1}`},
		"the second is not":            {[]workv1alpha1.ManifestStatus{of(0, well, `{"a":1}`), of(1, ill, `{"b":1}`)}, `Unhealthy {"a":1}`},
		"the second is not known":      {[]workv1alpha1.ManifestStatus{of(0, well, `{"a":1}`), of(1, unknown, "")}, `Unknown {"a":1}`},
		"the template's is missing":    {[]workv1alpha1.ManifestStatus{of(1, well, `{"b":1}`)}, `Unknown `},
		"it is missing, the other ill": {[]workv1alpha1.ManifestStatus{of(1, ill, `{"b":1}`)}, `Unhealthy `},
		"nothing is said":              {nil, `Unknown `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := work("a", "True", "", "", "")
			w.Spec.Workload.Manifests = make([]workv1alpha1.Manifest, 2)
			w.Status.ManifestStatuses = tc.statuses
			item := rollup.Items([]*workv1alpha1.Work{w}, nil)[0]
			got := string(item.Health) + " "
			if item.Status != nil {
				got += string(item.Status.Raw)
			}
			if got != tc.want {
				t.Errorf("item %q, want %q", got, tc.want)
			}
		})
	}
}
