package execution

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/execution/deletionrecheck"
)

// uplink is a hub that is there, and whose clock is the agent's.
type hubReachable struct{}

func (hubReachable) Away() error         { return nil }
func (hubReachable) Since() time.Time    { return time.Time{} }
func (hubReachable) Skew() time.Duration { return 0 }

// agent returns a fleet as moved does, whose loop is that of the agent of eu-1, which is back since so long after it was told to remove the copy.
func agent(t *testing.T, back time.Duration) *two {
	t.Helper()
	f := moved(t)
	f.change("a", func(w *workv1alpha1.Work) { w.Annotations[propagation.DigestAnnotation] = "digest" })
	f.parts.opts.Serves, f.parts.opts.Hub = func(*clusterv1alpha1.Cluster) bool { return true }, hubReachable{}
	f.loop.opts = f.parts.opts
	f.restart()
	f.queued()
	f.clock.SetTime(f.work("a").DeletionTimestamp.Add(back))
	f.loop.Proven("eu-1")
	f.clock.SetTime(f.work("a").DeletionTimestamp.Add(max(back, 0)))
	return f
}

// TestAnAgentAsksAboutWhatItMissed: a removal that began while the agent was away is done once the control plane has answered the question in
// the Work's status, which is asked in one write and no Event; an ordinary one asks nothing.
func TestAnAgentAsksAboutWhatItMissed(t *testing.T) {
	f := agent(t, -time.Minute)
	f.reconcile("a")
	if got := f.state("a"); !f.removed() || got != "gone" {
		t.Errorf("an ordinary removal: removed: %t, the Work is %s", f.removed(), got)
	}

	f = agent(t, time.Minute)
	f.reconcile("a")
	was := f.work("a")
	const prefix = "LastCopy: the agent or the control plane was away before the copy here was removed, which stays until the control plane finds a healthy one where the template is placed (asked at "
	if got := f.blockedBy("a"); f.removed() || len(got) < len(prefix) || got[:len(prefix)] != prefix {
		t.Fatalf("removed: %t; says: %s", f.removed(), got)
	}
	f.reconcile("a", "a")
	if diff := cmp.Diff([]any{was.ResourceVersion, []string(nil), false}, []any{f.work("a").ResourceVersion, f.events.reported, f.removed()}); diff != "" {
		t.Errorf("while there is no answer: version, Events, removed (-want +got):\n%s", diff)
	}

	is := f.work("a")
	is.Annotations[workv1alpha2.RemovalConfirmedAnnotation] = deletionrecheck.Question(is)
	if err := f.hub.Update(t.Context(), is); err != nil {
		t.Fatal(err)
	}
	f.loop.workSeen(was, is)
	if got := f.queued(); got != "a" {
		t.Errorf("an answer queues %q", got)
	}
	f.reconcile("a")
	if got := f.state("a"); !f.removed() || got != "gone" {
		t.Errorf("once it is answered: removed: %t, the Work is %s", f.removed(), got)
	}
}

// TestAnAgentAsksAboutWhatItDidNotReport: an agent that stopped between applying a copy and reporting it asks about it, too, and about none that is not there.
func TestAnAgentAsksAboutWhatItDidNotReport(t *testing.T) {
	for name, there := range map[string]bool{"the copy is there": true, "it was never applied": false} {
		t.Run(name, func(t *testing.T) {
			f := agent(t, time.Minute)
			work := f.work("a")
			work.Status = workv1alpha1.WorkStatus{}
			if err := f.hub.Status().Update(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			if !there {
				f.yard.there = nil
			}
			f.reconcile("a")
			if got := f.state("a"); there == (got == "gone") {
				t.Errorf("the Work is %s", got)
			}
		})
	}
}
