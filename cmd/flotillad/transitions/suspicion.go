package transitions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// over is the line once no loss is suspected any more.
const over = "no mass failure is suspected any more: losses of clusters count one by one again"

// suspicion is what is known, and was logged, of clusters that were lost at once.
type suspicion struct {
	of map[string]bool // the clusters that it stands on
	// message is the latest one of them, and due logs it; nil if it was logged.
	message string
	due     *time.Timer
	logged  bool
}

// suspect takes a new state of a cluster: one that is newly suspected to be lost with too many others is said
// together with those that are so within a moment, and that it is over when it stands on none.
func (w *watcher) suspect(c *clusterv1alpha1.Cluster, exists bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := &w.suspicion
	if exists && failover.Suspected(c) {
		s.message = meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionMassFailureSuspected).Message
		if !s.of[c.Name] && s.due == nil {
			s.due = time.AfterFunc(quiet, w.suspicious)
		}
		s.of[c.Name] = true
		return
	}
	if !s.of[c.Name] {
		return
	}
	delete(s.of, c.Name)
	if len(s.of) > 0 {
		return
	}
	if s.due != nil {
		s.due.Stop()
		s.due = nil
	}
	if s.logged {
		s.logged = false
		w.say("No mass failure is suspected any more", over)
	}
}

// suspicious says what stands by now.
func (w *watcher) suspicious() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := &w.suspicion
	if s.due == nil {
		return // it was over in the meantime
	}
	s.due, s.logged = nil, true
	w.say("A mass failure is suspected", s.message)
}

// say logs a message, and shows a line for people.
func (w *watcher) say(message, line string) {
	w.opts.Log.Info(message, "why", line)
	if w.opts.Screen != nil {
		w.opts.Screen(time.Now(), "failover: "+line)
	}
}

// gone handles a cluster that was removed.
func (w *watcher) gone(c *clusterv1alpha1.Cluster) {
	w.mutex.Lock()
	delete(w.notReady, c.Name)
	w.mutex.Unlock()
	w.suspect(c, false)
}
