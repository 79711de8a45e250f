package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/lastgood"
	"github.com/flotilla-io/flotilla/reconciler/apply/notices"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

var (
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	key   = client.ObjectKey{Namespace: "team", Name: "web"}
	fleet = inventory.GitRepository(client.ObjectKey{Namespace: "team", Name: "fleet"})
)

const (
	oldRevision = "main@sha1:0000000000000000000000000000000000000000"
	newRevision = "main@sha1:1111111111111111111111111111111111111111"
)

func configID(name string) inventory.ID {
	return inventory.ID{Namespace: "team", Name: name, GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
}

// run returns a state at noon, of a Kustomization that has applied the old
// revision and is at the new one.
func run(change ...func(*state)) *state {
	s := &state{
		ks: &kustomizev1.Kustomization{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 2},
			Spec:       kustomizev1.KustomizationSpec{Interval: metav1.Duration{Duration: 10 * time.Minute}},
			Status: kustomizev1.KustomizationStatus{
				ObservedGeneration: 2, LastAppliedRevision: oldRevision, LastAttemptedRevision: oldRevision,
				Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}},
			},
		},
		owner: key, now: noon, last: &lastApplied{}, built: built{"sha256:abc", 7},
		source:  source{Source: fleet, revision: newRevision, digest: "sha256:def"},
		desired: []inventory.Entry{{ID: configID("a"), Version: "v1"}},
		diff:    difference{at: target.Target{Applier: applier.New(nil, nil, applier.Options{})}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// summary is the part of a status that the table compares: "Type=Status/Reason" in the
// order of the types, and the revisions.
type summary struct {
	Conditions         []string
	Applied, Attempted string
	Observed           int64
	Handled            string
	Owned              int
	History            []string
}

func summarise(status kustomizev1.KustomizationStatus) summary {
	out := summary{Applied: status.LastAppliedRevision, Attempted: status.LastAttemptedRevision, Observed: status.ObservedGeneration, Handled: status.LastHandledReconcileAt}
	for _, kind := range []string{"Ready", "Reconciling", "Stalled", "Healthy"} {
		if c := apimeta.FindStatusCondition(status.Conditions, kind); c != nil {
			out.Conditions = append(out.Conditions, kind+"="+string(c.Status)+"/"+c.Reason)
		}
	}
	if status.Inventory != nil {
		out.Owned = len(status.Inventory.Entries)
	}
	for _, h := range status.History {
		out.History = append(out.History, h.LastReconciledStatus)
	}
	return out
}

func TestStatus(t *testing.T) {
	boom := errors.New("boom")
	asked := func(s *state) {
		s.ks.Generation = 3
		s.ks.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	}
	waits := func(s *state) { s.ks.Spec.Wait = true }
	cases := map[string]struct {
		state   *state
		outcome error
		want    summary
	}{
		"applied": {
			state: run(asked),
			want:  summary{Conditions: []string{"Ready=True/ReconciliationSucceeded"}, Applied: newRevision, Attempted: newRevision, Observed: 3, Handled: "now", Owned: 1, History: []string{"ReconciliationSucceeded"}},
		},
		"applied and healthy": {
			state: run(waits),
			want:  summary{Conditions: []string{"Ready=True/ReconciliationSucceeded", "Healthy=True/Succeeded"}, Applied: newRevision, Attempted: newRevision, Observed: 2, Owned: 1, History: []string{"ReconciliationSucceeded"}},
		},
		"waiting for health": {
			state: run(asked, waits, func(s *state) { s.waiting.text = "Running health checks" }),
			want:  summary{Conditions: []string{"Ready=Unknown/Progressing", "Reconciling=True/Progressing", "Healthy=Unknown/Progressing"}, Applied: oldRevision, Attempted: newRevision, Observed: 2, Owned: 1, History: []string{"Progressing"}},
		},
		"nothing is heard of a cluster": {
			state: run(asked, waits, func(s *state) { s.waiting = wait{text: "health is not known", silent: true} }),
			want:  summary{Conditions: []string{"Ready=Unknown/ClusterSilent", "Reconciling=True/Progressing", "Healthy=Unknown/ClusterSilent"}, Applied: oldRevision, Attempted: newRevision, Observed: 2, Handled: "now", Owned: 1, History: []string{"Progressing"}},
		},
		"unhealthy": {
			state: run(waits), outcome: loop.Waiting(meta.HealthCheckFailedReason, time.Second, boom),
			want: summary{Conditions: []string{"Ready=False/HealthCheckFailed", "Reconciling=True/ProgressingWithRetry", "Healthy=False/HealthCheckFailed"}, Applied: oldRevision, Attempted: newRevision, Observed: 2, Owned: 1, History: []string{"HealthCheckFailed"}},
		},
		"a person must act": {
			state: run(asked), outcome: loop.Stalled(inventory.ReasonPruneBlocked, boom),
			want: summary{Conditions: []string{"Ready=False/PruneBlocked", "Stalled=True/PruneBlocked"}, Applied: oldRevision, Attempted: newRevision, Observed: 3, Handled: "now", History: []string{"PruneBlocked"}},
		},
		"another object first": {
			state: run(asked), outcome: loop.Waiting(meta.DependencyNotReadyReason, time.Second, boom),
			want: summary{Conditions: []string{"Ready=False/DependencyNotReady", "Reconciling=True/ProgressingWithRetry"}, Applied: oldRevision, Attempted: newRevision, Observed: 2, Handled: "now"},
		},
		"a fault that may pass": {
			state: run(), outcome: boom,
			want: summary{Conditions: []string{"Ready=False/ReconciliationFailed", "Reconciling=True/ProgressingWithRetry"}, Applied: oldRevision, Attempted: newRevision, Observed: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome := loop.As(tc.outcome, reasonFailed)
			got := statusOf(tc.state, outcome, noon)
			if diff := cmp.Diff(tc.want, summarise(got)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			tc.state.ks.Status = got
			if diff := cmp.Diff(got, statusOf(tc.state, outcome, noon.Add(time.Hour))); diff != "" {
				t.Errorf("the same outcome an hour later changes the status:\n%s", diff)
			}
		})
	}
}

func TestNewObjectsAreOwnedBeforeTheyAreWritten(t *testing.T) {
	s := run(func(s *state) { s.diff.owned = []inventory.Entry{{ID: configID("b"), Version: "v1"}} })
	want := summary{Conditions: []string{"Ready=Unknown/Progressing", "Reconciling=True/Progressing"}, Applied: oldRevision, Attempted: newRevision, Observed: 2, Owned: 2}
	if diff := cmp.Diff(want, summarise(applyingStatus(s, noon))); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// TestANewRevisionHasItsTime: a revision that adds objects after one that failed has the whole timeout,
// and the message about the one before is not repeated for it.
func TestANewRevisionHasItsTime(t *testing.T) {
	s := run(func(s *state) {
		s.ks.Status.LastAttemptedRevision = oldRevision
		s.ks.Status.Conditions = []metav1.Condition{{Type: meta.HealthyCondition, Status: metav1.ConditionFalse, Reason: meta.HealthCheckFailedReason, ObservedGeneration: s.ks.Generation}}
	})
	ill := []health.Verdict{{ID: configID("a"), Reason: "no policy carries it"}}
	s.source.revision = oldRevision
	if left := health.Deadline(s.ks, s.source.revision, s.now).Sub(s.now); left > 0 {
		t.Errorf("the revision that failed has %s left", left)
	}
	_ = unhealthyError(s, "health check failed", ill)
	s.source.revision = newRevision
	s.ks.Status = applyingStatus(s, noon)
	if left := health.Deadline(s.ks, s.source.revision, s.now).Sub(s.now); left != s.ks.GetTimeout() {
		t.Errorf("the next one has %s left, want %s", left, s.ks.GetTimeout())
	}
	ill[0].Reason = "not ready"
	if text := unhealthyError(s, "health check failed", ill).Error(); !strings.Contains(text, "not ready") {
		t.Errorf("of the next one is said %q", text)
	}
	s.ks.Status = applyingStatus(s, noon)
	s.ks.Status.Conditions = append(s.ks.Status.Conditions, metav1.Condition{Type: meta.HealthyCondition, Status: metav1.ConditionFalse, ObservedGeneration: s.ks.Generation})
	s.ks.Status = applyingStatus(s, noon)
	if left := health.Deadline(s.ks, s.source.revision, s.now).Sub(s.now); left > 0 {
		t.Errorf("once it has failed it has %s left", left)
	}
}

func TestNotices(t *testing.T) {
	object := func(name string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind("ConfigMap")
		obj.SetNamespace("team")
		obj.SetName(name)
		return obj
	}
	did := func(s *state) {
		s.plan.Changes = []applier.Change{{Desired: object("a"), Action: applier.Created}, {Desired: object("b"), Action: applier.Unchanged}, {Desired: object("c"), Action: applier.Configured}}
		s.stale.Deleted = []inventory.Entry{{ID: configID("d")}}
	}
	same := func(s *state) { s.source.revision = oldRevision }
	other := func(s *state) { // artifact of the revision that was applied
		same(s)
		s.ks.Status.History = meta.History{{Metadata: map[string]string{gitopsv1alpha1.AppliedKey: "sha256:abc sha256:old " + oldRevision + " 7"}}}
	}
	failing := func(s *state) {
		s.ks.Status.Conditions[0].Status, s.ks.Status.Conditions[0].Reason, s.ks.Status.Conditions[0].Message = "False", "BuildFailed", "boom"
	}
	cases := map[string]struct {
		state   *state
		outcome error
		want    []notices.Notice
	}{
		"a new revision": {
			state: run(did),
			want:  []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + newRevision + " (1 created: ConfigMap/team/a; 1 configured: ConfigMap/team/c; 1 deleted: ConfigMap/team/d)"}},
		},
		"a new revision that changes nothing": {state: run(), want: []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + newRevision}}},
		"drift":                               {state: run(did, same), want: []notices.Notice{{Type: "Normal", Reason: "DriftCorrected", Message: "Brought back to revision " + oldRevision + ": 1 created: ConfigMap/team/a; 1 configured: ConfigMap/team/c; 1 deleted: ConfigMap/team/d"}}},
		"drift, again and again": {
			state: run(same, func(s *state) {
				s.plan.Changes = []applier.Change{{Desired: object("a"), Action: applier.Created}}
				for range 3 {
					s.last.returns.Deleted(configID("a"), noon, time.Minute)
				}
			}),
			want: []notices.Notice{{Type: "Normal", Reason: "DriftCorrected", Message: "Brought back to revision " + oldRevision + ": 1 created: ConfigMap/team/a; ConfigMap/team/a was deleted 3 times in a row, and comes back later each time: find out who deletes it"}},
		},
		"another artifact of the same revision": {
			state: run(did, other),
			want:  []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision + ", as what belongs to it changed (1 created: ConfigMap/team/a; 1 configured: ConfigMap/team/c; 1 deleted: ConfigMap/team/d)"}},
		},
		"one with another repository in it": {
			state: run(did, other, func(s *state) { s.source.included = "base main@sha1:12345678" }),
			want:  []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision + " with base main@sha1:12345678 (1 created: ConfigMap/team/a; 1 configured: ConfigMap/team/c; 1 deleted: ConfigMap/team/d)"}},
		},
		"one that changes nothing here": {state: run(other)},
		"nothing":                       {state: run(same)},
		"it works again":                {state: run(same, failing), want: []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision}}},
		"a failure":                     {state: run(), outcome: loop.Stalled("BuildFailed", errors.New("boom")), want: []notices.Notice{{Type: "Warning", Reason: "BuildFailed", Message: "boom"}}},
		"the same failure":              {state: run(failing), outcome: loop.Stalled("BuildFailed", errors.New("boom"))},
		"another failure":               {state: run(failing), outcome: loop.Stalled("BuildFailed", errors.New("bang")), want: []notices.Notice{{Type: "Warning", Reason: "BuildFailed", Message: "bang"}}},
		"another object first":          {state: run(), outcome: loop.Waiting("DependencyNotReady", 1, errors.New("a is not ready")), want: []notices.Notice{{Type: "Normal", Reason: "DependencyNotReady", Message: "a is not ready"}}},
		"waiting for health":            {state: run(did, func(s *state) { s.waiting.text = "Running" })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			outcome := loop.As(tc.outcome, reasonFailed)
			tc.state.last.record(tc.state, outcome, noon)
			after := tc.state.ks.DeepCopy()
			after.Status = statusOf(tc.state, outcome, noon)
			if diff := cmp.Diff(tc.want, eventsOf(tc.state, after, outcome)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWasDoneIsReportedWhenItStands: objects are written by one run and found healthy by
// another. The event of the revision lists the changes of all its runs, and later events none of them.
func TestWhatWasDoneIsReportedWhenItStands(t *testing.T) {
	object := func(name string) applier.Change {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind("ConfigMap")
		obj.SetNamespace("team")
		obj.SetName(name)
		return applier.Change{Desired: obj, Action: applier.Created}
	}
	kept := &lastApplied{}
	messageOf := func(err error, change ...func(*state)) string {
		s := run(change...)
		s.last = kept
		outcome := loop.As(err, reasonFailed)
		kept.record(s, outcome, noon)
		after := s.ks.DeepCopy()
		after.Status = statusOf(s, outcome, noon)
		for _, e := range eventsOf(s, after, outcome) {
			return e.Message
		}
		return ""
	}
	did := func(changes ...applier.Change) func(*state) {
		return func(s *state) { s.plan.Changes = changes }
	}
	waits := func(s *state) { s.waiting.text = "Running health checks" }
	current := func(s *state) { s.current = true }
	other := func(s *state) { s.source.revision = "main@sha1:2222222222222222222222222222222222222222" }
	for _, step := range []struct {
		what string
		got  string
		want string
	}{
		{"a namespace comes first", messageOf(loop.Waiting(meta.ProgressingReason, 1, errors.New("waits")), did(object("a"))), "waits"},
		{"the rest is applied", messageOf(nil, waits, did(object("a"), object("b"))), ""},
		{"it is unhealthy for a while", messageOf(loop.Waiting(meta.HealthCheckFailedReason, 1, errors.New("ill")), current), "ill"},
		{"its source is gone for a while", messageOf(loop.Waiting(meta.ArtifactFailedReason, 1, errors.New("gone")), func(s *state) { s.source = source{} }), ""},
		{"it is healthy", messageOf(nil, current), "Applied revision: " + newRevision + " (2 created: ConfigMap/team/a, ConfigMap/team/b)"},
		{"it is told once", messageOf(nil, current), "Applied revision: " + newRevision},
		{"another revision is applied", messageOf(nil, waits, did(object("c"))), ""},
		{"and given up for a newer one", messageOf(nil, other, did(object("d"))), "Applied revision: main@sha1:2222222222222222222222222222222222222222 (1 created: ConfigMap/team/d)"},
		{"what failed is not taken for done", messageOf(loop.Waiting(applier.ReasonForbidden, 1, errors.New("no")), did(object("e"))), "no"},
		{"when it works again", messageOf(nil, current), "Applied revision: " + newRevision},
	} {
		if step.got != step.want {
			t.Errorf("%s: %q, want %q", step.what, step.got, step.want)
		}
	}
}

// TestDriftIsReportedAsItIsCorrected: with spec.wait, objects that were brought back have yet to become healthy. The event
// comes at once all the same, and no later one repeats it.
func TestDriftIsReportedAsItIsCorrected(t *testing.T) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	obj.SetNamespace("team")
	obj.SetName("a")
	kept := &lastApplied{}
	ks := run(func(s *state) { s.source.revision = oldRevision }).ks
	step := func(err error, change ...func(*state)) []notices.Notice {
		s := run(append([]func(*state){func(s *state) { s.source.revision = oldRevision }}, change...)...)
		s.last, s.ks = kept, ks
		outcome := loop.As(err, reasonFailed)
		kept.record(s, outcome, noon)
		after := ks.DeepCopy()
		after.Status = statusOf(s, outcome, noon)
		defer func() { ks = after }()
		return eventsOf(s, after, outcome)
	}
	created := func(s *state) { s.plan.Changes = []applier.Change{{Desired: obj, Action: applier.Created}} }
	waits := func(s *state) { s.waiting.text = "Running health checks" }
	current := func(s *state) { s.current = true }
	changed := func(s *state) { s.ks.Generation++ }
	another := func(s *state) { s.source.digest = "sha256:another" }
	ill := loop.Waiting(meta.HealthCheckFailedReason, 1, errors.New("ill"))
	drift := notices.Notice{Type: "Normal", Reason: "DriftCorrected", Message: "Brought back to revision " + oldRevision + ": 1 created: ConfigMap/team/a"}
	healthy := notices.Notice{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision}
	for _, step := range []struct {
		what string
		got  []notices.Notice
		want []notices.Notice
	}{
		{"it stands", step(nil), nil},
		{"what was deleted is put back", step(nil, created, waits), []notices.Notice{drift}},
		{"it is healthy again", step(nil, current), []notices.Notice{healthy}},
		{"it is put back in two runs", step(loop.Waiting(meta.ProgressingReason, 1, errors.New("waits")), created), []notices.Notice{{Type: "Normal", Reason: "Progressing", Message: "waits"}}},
		{"and told by the second", step(nil, waits), []notices.Notice{drift}},
		{"what was put back fails", step(ill, current), []notices.Notice{{Type: "Warning", Reason: "HealthCheckFailed", Message: "ill"}}},
		{"it is deleted once more", step(ill, created), []notices.Notice{drift}},
		{"it stands at last", step(nil, current), []notices.Notice{healthy}},
		{"it is deleted, and healthy at once", step(nil, created), []notices.Notice{drift}},
		{"its fields are changed", step(nil, created, waits, func(*state) { ks = ks.DeepCopy() }, func(s *state) { s.ks = ks }, changed), nil},
		{"and it is healthy with these", step(nil, current), []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision + " (1 created: ConfigMap/team/a)"}}},
		{"what belongs to its commit changes", step(nil, created, waits, another), nil},
		{"and it is healthy with that", step(nil, current, another), []notices.Notice{{Type: "Normal", Reason: "ReconciliationSucceeded", Message: "Applied revision: " + oldRevision + ", as what belongs to it changed (1 created: ConfigMap/team/a)"}}},
		{"of which something is deleted", step(nil, created, another), []notices.Notice{drift}},
	} {
		if diff := cmp.Diff(step.want, step.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// TestSilence: while a cluster is silent the timeout of the health check does not run, and
// it starts again when the cluster is back.
func TestSilence(t *testing.T) {
	waits := func(silent bool) func(*state) {
		return func(s *state) {
			s.ks.Spec.Wait, s.waiting = true, wait{text: "waits", silent: silent}
			s.ks.Spec.Timeout = &metav1.Duration{Duration: time.Minute}
		}
	}
	s := run(waits(true))
	for i, step := range []struct {
		silent bool
		left   time.Duration
	}{{true, time.Minute}, {false, time.Minute}, {false, -time.Hour + time.Minute}} {
		s.ks.Status = statusOf(s, nil, s.now)
		s.now = s.now.Add(time.Hour)
		if i == 1 {
			s.now = s.now.Add(-time.Hour) // it is back at once
		}
		s.waiting.silent = step.silent
		if left := health.Deadline(s.ks, s.source.revision, s.now).Sub(s.now); left != step.left {
			t.Errorf("step %d: %s are left, want %s", i, left, step.left)
		}
	}
}

func TestLastApplied(t *testing.T) {
	const interval = 10 * time.Minute
	recalls := func(m *lastApplied, at time.Time, change ...func(*state)) bool {
		s := run(change...)
		s.last, s.now = m, at
		return m.load(s)
	}
	stands := func(s *state) { s.source.revision = oldRevision }

	m := &lastApplied{}
	if recalls(m, noon) {
		t.Error("a new revision is taken for one that stands")
	}
	s := run()
	m.record(s, nil, noon)
	if !recalls(m, noon.Add(interval*9/10)) {
		t.Error("an applied revision is forgotten before it is due")
	}
	if recalls(m, noon.Add(interval*11/10)) {
		t.Error("an applied revision is not looked at again when it is due")
	}
	for what, change := range map[string]func(*state){
		"a new spec":           func(s *state) { s.ks.Generation++ },
		"a new artifact":       func(s *state) { s.source.digest = "sha256:other" },
		"a request":            func(s *state) { s.ks.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"} },
		"leave to delete more": func(s *state) { s.ks.Annotations = map[string]string{inventory.AllowPruneAnnotation: "true"} },
	} {
		if recalls(m, noon, change) {
			t.Errorf("%s goes unnoticed", what)
		}
	}
	m.record(s, loop.As(loop.Stalled("BuildFailed", errors.New("boom")), ""), noon)
	if recalls(m, noon) {
		t.Error("a failure is taken for a revision that stands")
	}

	restarted := &lastApplied{}
	if !recalls(restarted, noon, stands) {
		t.Error("what the status says is applied is applied again after a restart")
	}
	if after := restarted.dueAfter(noon); after > interval {
		t.Errorf("the first look after a restart comes after %s, want it within %s", after, interval)
	}
	if recalls(&lastApplied{}, noon, stands, func(s *state) { s.ks.Status.Conditions[0].Status = "False" }) {
		t.Error("a failed revision is taken for one that stands after a restart")
	}
	for what, change := range map[string]func(*state){
		"a switch that has not ended": func(s *state) {
			s.ks.Status.Conditions = append(s.ks.Status.Conditions, metav1.Condition{Type: revisiongate.Condition, Status: metav1.ConditionTrue})
		},
		"variables that may be others": func(s *state) {
			s.ks.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}}
		},
	} {
		if recalls(&lastApplied{}, noon, stands, change) {
			t.Errorf("%s: what the status says is taken for what stands after a restart", what)
		}
	}
}

// TestWhatIsDeletedAgainComesBackLater: a deleted object is applied again at once the first time, and later after a
// wait. Runs for other reasons during the wait are not full ones.
func TestWhatIsDeletedAgainComesBackLater(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(noon)
	states := newLastAppliedStates(clock)
	m := states.of(key)
	stands := func() bool {
		s := run()
		s.last, s.now = m, clock.Now()
		return m.load(s)
	}
	stands()
	m.record(run(), nil, noon)
	var waits []time.Duration
	for range 4 {
		after, misses := states.RecreateAfter(key, configID("a"))
		if !misses {
			t.Fatal("an object of the revision is not missed")
		}
		waits = append(waits, after)
		if after > 0 && !stands() {
			t.Errorf("it comes back before %s are over", after)
		}
		if due := m.dueAfter(clock.Now()); due != after {
			t.Errorf("the next look is after %s, want %s", due, after)
		}
		clock.SetTime(clock.Now().Add(after))
		if stands() {
			t.Errorf("after %s it does not come back", after)
		}
		m.record(run(), nil, clock.Now())
		if !stands() {
			t.Error("it comes back twice")
		}
	}
	if diff := cmp.Diff([]time.Duration{0, time.Second / 2, time.Second, 2 * time.Second}, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if _, misses := states.RecreateAfter(key, configID("other")); misses {
		t.Error("what is of another revision is missed")
	}
}

// TestWhatIsNotThereIsReported: a revision is not ready while an object is missing, unless that is applied again at once.
func TestWhatIsNotThereIsReported(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(noon)
	states := newLastAppliedStates(clock)
	m := states.of(key)
	ks := run(func(s *state) { s.source.revision = oldRevision }).ks
	var events []string
	step := func(change ...func(*state)) string {
		s := run(append(change, func(s *state) { s.source.revision, s.ks, s.last, s.now = oldRevision, ks, m, clock.Now() })...)
		s.current = m.load(s)
		if _, err := (&Reconciler{}).assessHealth(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		_, err := reportHealth(t.Context(), s)
		outcome := loop.As(err, reasonFailed)
		if s.current {
			s.plan = applier.Plan{}
		}
		m.record(s, outcome, clock.Now())
		after := ks.DeepCopy()
		after.Status = statusOf(s, outcome, clock.Now())
		for _, e := range eventsOf(s, after, outcome) {
			events = append(events, e.Reason)
		}
		ks = after
		ready := apimeta.FindStatusCondition(after.Status.Conditions, "Ready")
		if outcome != nil {
			return string(ready.Status) + " " + ready.Reason + ": " + ready.Message + ", again after " + outcome.After.String()
		}
		return string(ready.Status)
	}
	created := func(s *state) {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("v1")
		obj.SetKind("ConfigMap")
		obj.SetNamespace("team")
		obj.SetName("a")
		s.plan.Changes = []applier.Change{{Desired: obj, Action: applier.Created}}
	}
	step()
	m.record(run(func(s *state) { s.source.revision = oldRevision }), nil, noon)
	var got []string
	for range 5 {
		after, _ := states.RecreateAfter(key, configID("a"))
		got = append(got, step()+" is looked at after "+after.String())
		clock.SetTime(returnsAt(m, clock.Now()))
		got = append(got, step(created))
	}
	const missing = "False DeletedAgain: ConfigMap/team/a is not there: it was deleted 5 times in a row, and comes back at 2026-01-02T12:00:07Z; find out who deletes it, again after 4s is looked at after 0s"
	want := []string{"True is looked at after 0s", "True", "True is looked at after 500ms", "True", "True is looked at after 1s", "True", "True is looked at after 2s", "True", missing, "True"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Ready (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"DriftCorrected", "DriftCorrected", "DriftCorrected", "DeletedAgain", "DriftCorrected"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := len(ks.Status.History); n > 1 {
		t.Errorf("the history has %d entries", n)
	}
}

// TestWhatGoesWhileItIsAppliedComesBack: an object of a revision may still be being deleted when the revision is
// applied, as the one before did not hold it.
func TestWhatGoesWhileItIsAppliedComesBack(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(noon)
	states := newLastAppliedStates(clock)
	m := states.of(key)
	m.record(run(func(s *state) { s.source.revision, s.desired = oldRevision, nil }), nil, noon)
	s := run(func(s *state) { s.last = m })
	s.current = m.load(s)
	setApplying(m, s.desired)
	clock.SetTime(noon.Add(time.Second))
	if _, misses := states.RecreateAfter(key, configID("a")); !misses {
		t.Error("what a run applies is not missed")
	}
	m.record(s, nil, clock.Now())
	s = run(func(s *state) { s.now = clock.Now() })
	if m.load(s) {
		t.Error("it is taken for what stands")
	}
	m.record(s, nil, clock.Now())
	s = run(func(s *state) { s.desired, s.now = nil, clock.Now() })
	setApplying(m, s.desired)
	m.record(s, nil, clock.Now())
	if _, misses := states.RecreateAfter(key, configID("a")); misses {
		t.Error("what a run before applied is missed")
	}
}

// returnsAt returns when the next missing object is applied again.
func returnsAt(m *lastApplied, now time.Time) time.Time {
	if due := m.returns.Due(); !due.IsZero() {
		return due
	}
	return now
}

func TestHealthDeadline(t *testing.T) {
	wait := func(status metav1.ConditionStatus, since time.Time) func(*state) {
		return func(s *state) {
			s.ks.Status.LastAttemptedRevision = newRevision
			s.ks.Status.Conditions = append(s.ks.Status.Conditions, metav1.Condition{Type: "Healthy", Status: status, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(since)})
		}
	}
	const timeout = 9*time.Minute + 30*time.Second
	cases := map[string]struct {
		state *state
		want  time.Duration
	}{
		"a new revision has all the time":           {state: run(), want: timeout},
		"one that is waited for has the rest":       {state: run(wait("Unknown", noon.Add(-time.Minute))), want: timeout - time.Minute},
		"one that has failed has none":              {state: run(wait("False", noon.Add(-time.Minute)))},
		"one that was healthy has all the time":     {state: run(wait("True", noon.Add(-time.Hour))), want: timeout},
		"a new spec has all the time":               {state: run(wait("False", noon), func(s *state) { s.ks.Generation++ }), want: timeout},
		"a revision after a failed one has it, too": {state: run(wait("False", noon), func(s *state) { s.ks.Status.LastAttemptedRevision = oldRevision }), want: timeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := health.Deadline(tc.state.ks, tc.state.source.revision, tc.state.now).Sub(noon); got != tc.want {
				t.Errorf("time left = %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatComesBeforeHealthTakesNoTimeOfIt: a revision that waits for its dependency first does not begin with the
// message of the one before, and has the whole timeout once the dependency is ready.
func TestWhatComesBeforeHealthTakesNoTimeOfIt(t *testing.T) {
	for name, attempted := range map[string]string{"the revision before has failed": oldRevision, "this one has begun": newRevision} {
		t.Run(name, func(t *testing.T) {
			s := run(func(s *state) {
				s.ks.Spec.Wait, s.ks.Status.LastAttemptedRevision = true, attempted
				s.ks.Status.Conditions = append(s.ks.Status.Conditions, metav1.Condition{
					Type: "Healthy", Status: "False", Reason: meta.HealthCheckFailedReason, Message: "old", ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
				})
			})
			s.ks.Status = statusOf(s, loop.As(loop.Waiting(meta.DependencyNotReadyReason, time.Second, errors.New("not ready")), reasonFailed), noon)
			if healthy := apimeta.FindStatusCondition(s.ks.Status.Conditions, meta.HealthyCondition); healthy != nil {
				t.Errorf("while its dependency is awaited it is %s: %s", healthy.Reason, healthy.Message)
			}
			if got, want := health.Deadline(s.ks, s.source.revision, s.now).Sub(noon), s.ks.GetTimeout(); got != want {
				t.Errorf("time left = %s, want %s", got, want)
			}
		})
	}
}

// TestWhyHealthHasFailed: only a health check that used up its timeout is reported as having done so.
func TestWhyHealthHasFailed(t *testing.T) {
	for before, want := range map[string]string{
		"":                                   "health check failed after 9m30s",
		"health check failed: x":             "health check failed",
		"health check failed after 9m30s: x": "health check failed after 9m30s",
	} {
		s := run(func(s *state) {
			status := metav1.ConditionUnknown
			if before != "" {
				status = metav1.ConditionFalse
			}
			s.ks.Status.Conditions = append(s.ks.Status.Conditions, metav1.Condition{Type: "Healthy", Status: status, Message: before})
		})
		if got := health.Lost(s.ks); got != want {
			t.Errorf("after %q it is %q, want %q", before, got, want)
		}
	}
}

func TestHealthComplaintsStand(t *testing.T) {
	s := run()
	verdict := func(reason string) []health.Verdict {
		return []health.Verdict{{ID: configID("a"), State: rollup.Failed, Reason: reason}}
	}
	first := unhealthyError(s, "health check failed", verdict("1/3")).Error()
	if want := "health check failed: ConfigMap/team/a: 1/3"; first != want {
		t.Errorf("error = %q, want %q", first, want)
	}
	if got := unhealthyError(s, "health check failed", verdict("2/3")).Error(); got != first {
		t.Errorf("the text ticks: %q, then %q", first, got)
	}
	s.last.record(s, nil, noon)
	if got := unhealthyError(s, "health check failed", verdict("2/3")).Error(); got == first {
		t.Errorf("a new complaint repeats the old one: %q", got)
	}
}

func TestTheHistoryNamesTheCommit(t *testing.T) {
	s := run(func(s *state) {
		s.source.commit = map[string]string{gitopsv1alpha1.CommitAuthorKey: "Ann <ann@example.com>", gitopsv1alpha1.CommitSubjectKey: "More replicas"}
	})
	want := map[string]string{
		"revision":                          newRevision,
		"gitops.flotilla.io/changed":        newRevision,
		"gitops.flotilla.io/commit-author":  "Ann <ann@example.com>",
		"gitops.flotilla.io/commit-subject": "More replicas",
	}
	status := statusOf(s, nil, noon)
	if diff := cmp.Diff(want, status.History.Latest().Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// What is applied is recorded with the outcome, and forgotten if only a part of a revision was written.
func TestTheRevisionThatStandsIsRecorded(t *testing.T) {
	before := lastgood.Record{Revision: oldRevision, Artifact: "sha256:before", Objects: "sha256:old", Bytes: 5}
	refusal := loop.As(loop.Stalled("PruneBlocked", errors.New("boom")), "")
	cases := map[string]struct {
		change  func(*state)
		outcome *loop.Error
		want    lastgood.Record
	}{
		"one that is applied":                       {func(s *state) { s.writes = whole }, nil, lastgood.Record{Revision: newRevision, Artifact: "sha256:def", Objects: "sha256:abc", Bytes: 7, Sources: []inventory.Source{fleet}}},
		"one whose health is waited for":            {func(s *state) { s.writes, s.waiting.text = whole, "waits" }, nil, lastgood.Record{Revision: newRevision, Artifact: "sha256:def", Objects: "sha256:abc", Bytes: 7, Sources: []inventory.Source{fleet}}},
		"one that is refused":                       {func(*state) {}, refusal, before},
		"one that is written in part":               {func(s *state) { s.writes = part }, refusal, lastgood.Record{Bytes: 7, Sources: []inventory.Source{fleet}}},
		"one that changes nothing":                  {func(s *state) { s.current, s.sameContent = true, true }, nil, lastgood.Record{Revision: newRevision, Artifact: "sha256:def", Objects: "sha256:abc", Bytes: 7, Sources: []inventory.Source{fleet}}},
		"one that changes nothing, after a restart": {func(s *state) { s.current, s.sameContent, s.built = true, true, built{} }, nil, lastgood.Record{Revision: newRevision, Artifact: "sha256:def", Objects: "sha256:old", Bytes: 5, Sources: []inventory.Source{fleet}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := run(tc.change)
			s.ks.Status.History = meta.History{{Digest: "sha256:old", LastReconciledStatus: meta.ReconciliationSucceededReason}}
			lastgood.Write(&s.ks.Status, before)
			if diff := cmp.Diff(tc.want, lastgood.In(statusOf(s, tc.outcome, noon))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Who made the commit that stands is known as long as that stands: while its health is waited for, and the next commit is refused,
// whether any revision came to an end before or not, and however many are refused since.
func TestTheCommitThatStandsIsRecorded(t *testing.T) {
	ann := map[string]string{gitopsv1alpha1.CommitAuthorKey: "Ann <ann@example.com>", gitopsv1alpha1.CommitSubjectKey: "More replicas"}
	ben := map[string]string{gitopsv1alpha1.CommitAuthorKey: "Ben <ben@example.com>"}
	refusal := func(reason string) *loop.Error { return loop.As(loop.Stalled(reason, errors.New("boom")), "") }
	for name, before := range map[string]meta.History{
		"the first revision": nil,
		"a later one":        {{Digest: "sha256:old", LastReconciledStatus: meta.ReconciliationSucceededReason, Metadata: map[string]string{"revision": oldRevision}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := run(func(s *state) {
				s.ks.Status.History = before
				s.source.commit, s.writes, s.waiting.text = ann, whole, "Running health checks"
			})
			s.ks.Status = statusOf(s, nil, noon)
			for i := range 7 {
				refused := run(func(refused *state) {
					refused.ks.Status = s.ks.Status
					refused.source.revision, refused.source.commit, refused.digest = fmt.Sprintf("main@sha1:%d", i), ben, fmt.Sprintf("sha256:%d", i)
				})
				s.ks.Status = statusOf(refused, refusal("PruneBlocked"), noon)
			}
			want := lastgood.Record{Revision: newRevision, Artifact: "sha256:def", Objects: "sha256:abc", Bytes: 7, Sources: []inventory.Source{fleet}, Commit: ann}
			if diff := cmp.Diff(want, lastgood.In(s.ks.Status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A Kustomization that a commit does not change, and that waits for a dependency, does not count as changed by it.
func TestWaitingForADependencyIsNoChange(t *testing.T) {
	s := run()
	s.ks.Status.History = meta.History{{Digest: "sha256:abc", LastReconciledStatus: meta.ReconciliationSucceededReason, Metadata: map[string]string{"revision": oldRevision, gitopsv1alpha1.ChangedKey: oldRevision}}}
	s.digest = ""
	s.ks.Status = statusOf(s, loop.As(loop.Waiting(meta.DependencyNotReadyReason, 1, errors.New("waits")), ""), noon)
	s.digest, s.writes = "sha256:abc", whole
	s.ks.Status = statusOf(s, nil, noon)
	if got := inventory.Changed(&s.ks.Status); got != oldRevision {
		t.Errorf("changed by %s, want %s", got, oldRevision)
	}
}
