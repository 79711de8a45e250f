package deletionrecheck

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/execution/waitqueue"
)

// Hub is what an agent knows of its hub.
type Hub interface {
	// Away is why nothing is heard of the hub; nil if it is there.
	Away() error
	// Since is when it was found to be there after it was away.
	Since() time.Time
	// Skew is how far the hub's clock is ahead of this one.
	Skew() time.Duration
}

// asked is why the objects stay in the cluster of an agent: the control plane has not said yet, since the agent, its cluster and its hub are
// all there, that they may go. It is a question by being in the Work's status. Its time makes it another one after each absence, so that
// no answer of before counts.
type asked struct{ since time.Time }

func (a *asked) Error() string {
	return staleremoval.Question(a.since)
}

// Asks reports whether err is the question of an agent.
func Asks(err error) bool { return errors.As(err, new(*asked)) }

// Question returns what the status of a Work that is being deleted asks the control plane: the value by which RemovalConfirmedAnnotation
// answers it; empty if it asks nothing.
func Question(work *workv1alpha1.Work) string {
	c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkDeletionBlocked)
	if work.DeletionTimestamp.IsZero() || c == nil || c.Status != metav1.ConditionTrue || c.Reason != Reason {
		return ""
	}
	return answerTo(c.Message)
}

func answerTo(question string) string {
	hash := sha256.Sum256([]byte(question))
	return hex.EncodeToString(hash[:8])
}

// asks returns an error of Asks if an agent has to ask the control plane before it removes the objects of a Work, and one of Waits while its
// hub is away: by the time that is back the removal was interrupted. Works that Flotilla's loops did not write for a template, such as those
// of another control plane, are not asked about: nobody would answer.
func (j *Judge) asks(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	_, bound := bindings.OwnerOf(work)
	if j.opts.Hub == nil || !bound || work.Annotations[propagation.DigestAnnotation] == "" || !matters(work, cluster) {
		return nil
	}
	j.Seen(work)
	if away := j.opts.Hub.Away(); away != nil {
		return &unheard{text: "nothing is removed before the control plane can be asked, which is away: " + away.Error(), after: waitqueue.SafetyNet}
	}
	back, interrupted := j.broken(work, cluster.Name)
	ask := &asked{since: back}
	if !interrupted && Question(work) == "" || work.Annotations[workv1alpha2.RemovalConfirmedAnnotation] == answerTo(ask.Error()) {
		return nil
	}
	return ask
}

const (
	// prompt is how long after it began an agent hears of a deletion at the latest that nothing has held up.
	prompt = 5 * time.Second
	// inexact is by how much the difference of two clocks may be wrong: answers give the hub's time in seconds.
	inexact = 2 * time.Second
)

// Seen notes that an agent has heard of a Work. A deletion that it hears of late was interrupted, although neither side may have noticed.
func (j *Judge) Seen(work *workv1alpha1.Work) {
	if j.opts.Hub == nil || work.DeletionTimestamp.IsZero() {
		return
	}
	now, key := j.opts.Clock.Now(), client.ObjectKeyFromObject(work)
	j.failures.mu.Lock()
	defer j.failures.mu.Unlock()
	if seen, known := j.failures.seen[key]; known && seen == work.UID {
		return
	}
	j.failures.seen[key] = work.UID
	if now.Add(j.opts.Hub.Skew()).Sub(work.DeletionTimestamp.Time) > prompt+inexact {
		j.failures.at[key] = now
	}
}

// ahead returns how far the clock of who wrote a deletion may be ahead of this one.
func (j *Judge) ahead() time.Duration {
	if j.opts.Hub == nil {
		return 0
	}
	return j.opts.Hub.Skew() + inexact
}
