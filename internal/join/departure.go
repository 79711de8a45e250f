package join

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join/outlook"
)

// Departure observes a cluster that leaves the fleet, and records the objects
// that nobody removed there: when a cluster is not ready, the control plane lets
// its Works go without removing their objects. Name and Hub are required.
type Departure struct {
	// Name of the cluster on the hub, which is read by Hub.
	Name string
	Hub  client.Reader
	// Answers checks whether the member of a cluster in push mode answers; nil if
	// that cannot be checked. Whether an agent is alive shows in its Lease.
	Answers func(context.Context) error
	// Report is called every few seconds with what is waited for; it may be nil.
	Report func(line string)
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock

	remaining map[string][]string // by Work: objects that have yet to be removed
	doubt     map[string][]string // those of Works that are gone, while it is not known who removed them
	left      map[string][]string // those of Works that are gone without having removed them
	begun     bool
	pull      bool
	well      bool
	taken     bool

	contact  contact
	reported string
	when     time.Time
}

// contact is what has been heard of a cluster.
type contact struct {
	at      time.Time // when it was last heard of; zero for never
	asked   time.Time
	mute    bool // it was asked, and has not answered
	renewed *metav1.MicroTime
	timeout time.Duration // how long it may be silent
}

// spoke records a time at which the cluster was heard of as well. An agent that
// starts reports the state of its cluster before it renews its Lease.
func (v *contact) spoke(at, now time.Time) {
	if !v.at.IsZero() && at.After(v.at) && !at.After(now) {
		v.at = at
	}
}

const (
	// everySome is how often progress is reported, and how often the member is
	// asked.
	everySome = 5 * time.Second
	// agentTimeout is how long an agent may be silent whose Lease has no duration.
	agentTimeout = 20 * time.Second
	// answerTimeout is how long a member may take to answer.
	answerTimeout = 2 * time.Second
)

// Observe records the state of the cluster; nil means that it is gone.
func (d *Departure) Observe(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	known, err := d.Check(ctx, cluster)
	d.begun = true
	if err == nil && known && cluster != nil {
		d.report(ctx)
	}
	return err
}

// Check is Observe where the registration is still to be removed, so that nothing is
// waited for yet: of a cluster whose agent has been silent for long, all Works may go in
// the same moment as that. known is false where the caller may not list the Works.
func (d *Departure) Check(ctx context.Context, cluster *clusterv1alpha1.Cluster) (known bool, err error) {
	d.begin()
	if cluster != nil {
		d.pull = cluster.Spec.SyncMode == clusterv1alpha1.Pull
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		d.listen(ctx)
		if d.pull && outlook.Reached(cluster) { // as the agent says itself
			d.contact.spoke(ready.LastTransitionTime.Time, d.Clock.Now())
		}
		d.well = outlook.Reached(lately(ctx, d, cluster))
		d.taken = d.taken || ready != nil && ready.Reason == clusterv1alpha1.ClusterClaimedReason
		if d.well { // Works of a cluster that is reached go only when their objects are removed
			clear(d.doubt)
		}
	}
	remaining, known, err := d.works(ctx, cluster == nil)
	if err != nil || !known {
		return known, err
	}
	for work, objects := range d.remaining {
		if _, there := remaining[work]; !there {
			d.doubt[work] = objects
		}
	}
	d.remaining = remaining
	if !d.well || cluster == nil && d.unheard() {
		maps.Copy(d.left, d.doubt)
		clear(d.doubt)
	}
	return true, nil
}

// byItsAnswer returns the cluster as it is now by its own answer: the condition of one in push
// mode stays Ready for a while after it stops to answer, and what runs there is not
// removed.
func byItsAnswer(ctx context.Context, d *Departure, cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	if cluster.Spec.SyncMode != clusterv1alpha1.Push || d.Answers == nil || !outlook.Reached(cluster) {
		return lately(ctx, d, cluster)
	}
	d.begin()
	if d.listen(ctx); !d.contact.mute {
		return cluster
	}
	cluster = cluster.DeepCopy()
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse,
		Reason: clusterv1alpha1.ClusterNotReachableReason, Message: "it does not answer now",
	})
	return cluster
}

// lately returns the cluster with its present reason. The condition of a cluster
// in push mode stays NotReachable for a while after it answers again, although
// its objects are removed by then.
func lately(ctx context.Context, d *Departure, cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Reason != clusterv1alpha1.ClusterNotReachableReason || cluster.Spec.SyncMode != clusterv1alpha1.Push || d.Answers == nil {
		return cluster
	}
	d.begin()
	if d.listen(ctx); d.contact.mute {
		return cluster
	}
	cluster = cluster.DeepCopy()
	meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady).Reason = clusterv1alpha1.ClusterAnswersAgainReason
	return cluster
}

func (d *Departure) begin() {
	if d.left != nil {
		return
	}
	d.doubt, d.left = map[string][]string{}, map[string][]string{}
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
}

// Begun reports whether the cluster was observed: from then on it leaves, whether
// anybody waits for that or not.
func (d *Departure) Begun() bool { return d.begun }

// Abandon records that nobody will remove the remaining objects.
func (d *Departure) Abandon() {
	d.begin()
	d.begun = true
	maps.Copy(d.left, d.remaining)
	clear(d.remaining)
}

// Left returns the objects that nobody has removed, as far as the hub knows, as
// in "Deployment shop/web".
func (d *Departure) Left() []string {
	found := map[string]bool{}
	for _, objects := range d.left {
		for _, title := range objects {
			found[title] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Taken reports whether another control plane has the cluster by now, and with it
// the objects that are left.
func (d *Departure) Taken() bool { return d.taken }

// Silent returns for how long nothing has been heard of the cluster's agent, or
// of a member that was asked. Zero means that the cluster answers, or that nobody
// listens.
func (d *Departure) Silent() time.Duration {
	if d.contact.at.IsZero() || !d.pull && !d.contact.mute {
		return 0
	}
	return d.Clock.Since(d.contact.at)
}

// unheard reports whether nobody can have removed the objects of Works that are
// gone. A member that does not answer counts at once, as it may have been hanging
// long before it was first asked; an agent counts only after its timeout.
func (d *Departure) unheard() bool {
	return d.contact.mute || d.Silent() > d.contact.timeout
}

// listen reads the agent's Lease, or asks the member.
func (d *Departure) listen(ctx context.Context) {
	switch {
	case d.pull:
		d.hear(ctx)
	case d.Answers != nil && d.Clock.Since(d.contact.asked) >= everySome:
		d.ask(ctx)
	}
}

// hear reads the agent's Lease. Its time, which is by the agent's clock, counts
// only when it is first read; later it counts that the time has changed.
func (d *Departure) hear(ctx context.Context) {
	lease := &coordinationv1.Lease{}
	err := d.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: d.Name}, lease)
	if err != nil || lease.Spec.RenewTime == nil || d.contact.renewed.Equal(lease.Spec.RenewTime) {
		return // a Lease that cannot be read shows nothing
	}
	now := d.Clock.Now()
	if d.contact.at = now; d.contact.renewed == nil && lease.Spec.RenewTime.Time.Before(now) {
		d.contact.at = lease.Spec.RenewTime.Time
	}
	d.contact.renewed, d.contact.timeout = lease.Spec.RenewTime, agentTimeout
	if of := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); of > 0 {
		d.contact.timeout = time.Duration(of) * time.Second / 2 //nolint:mnd // it is renewed in a quarter of it
	}
}

// ask asks the member. A refusal counts as an answer.
func (d *Departure) ask(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := d.Answers(short)
	now := d.Clock.Now()
	mute := err != nil && !slices.Contains(answers, apierrors.ReasonForError(err))
	if !mute || !d.contact.mute {
		d.contact.at = now
	}
	d.contact.asked, d.contact.mute, d.contact.timeout = now, mute, everySome
}

// answers are the reasons of errors that the member, or the hub in front of it,
// responds with.
var answers = []metav1.StatusReason{
	metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonNotFound, metav1.StatusReasonMethodNotAllowed,
}

// works returns the Works that have objects to remove. known is false where the
// caller may not list them, as an agent's rights are removed with its cluster.
func (d *Departure) works(ctx context.Context, gone bool) (remaining map[string][]string, known bool, err error) {
	works := &workv1alpha1.WorkList{}
	err = d.Hub.List(ctx, works, client.InNamespace(workv1alpha2.ExecutionNamespace(d.Name)))
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return nil, gone, nil
	case err != nil:
		return nil, false, fmt.Errorf("list the works of cluster %s: %w", d.Name, err)
	}
	remaining = map[string][]string{}
	for i := range works.Items {
		if work := &works.Items[i]; controllerutil.ContainsFinalizer(work, workv1alpha2.ExecutionControllerFinalizer) {
			remaining[work.Name] = outlook.Objects(work)
		}
	}
	return remaining, true, nil
}

// report reports how far the removal is, if that has changed and some time has
// passed.
func (d *Departure) report(ctx context.Context) {
	now := d.Clock.Now()
	if d.Report == nil || !d.when.IsZero() && now.Sub(d.when) < everySome {
		return
	}
	ran, by := 0, ""
	for _, objects := range d.remaining {
		ran += min(len(objects), 1)
	}
	if ran == 0 {
		by, _ = placedIn(ctx, d.Hub, d.Name) // fails for an agent, which may not list bindings
	}
	state := d.state(ran, by)
	switch {
	case state == d.reported:
		return
	// Most clusters are gone before anybody wants to know.
	case d.when.IsZero() && !d.pull, len(d.remaining) == 0 && by == "" && d.reported == "":
		d.when = now
		return
	}
	d.reported, d.when = state, now
	d.Report(state)
}

// state returns what is waited for: objects of ran Works, or templates that are
// still placed in the cluster, in by.
func (d *Departure) state(ran int, by string) string {
	switch {
	case ran == 0 && by != "":
		return fmt.Sprintf("nothing is left that is to be removed from cluster %s: waiting for what is placed there still: %s", d.Name, by)
	case ran == 0:
		return fmt.Sprintf("nothing is left that is to be removed from cluster %s: waiting for the rest of it to leave", d.Name)
	}
	state, quiet := fmt.Sprintf("waiting for cluster %s: what %s had it run is still to be removed there", d.Name, counted(ran, "Work")), "it has not answered"
	if d.pull {
		state, quiet = fmt.Sprintf("what %s had it run is still to be removed from cluster %s by its agent", counted(ran, "Work"), d.Name), "nothing has been heard of its agent"
	}
	silent := d.Silent()
	switch {
	case silent > 0 && silent >= d.contact.timeout-everySome:
		state += fmt.Sprintf("; %s for %s", quiet, silent.Round(time.Second))
	case !d.well:
		state += ", which does not say that it is well"
	default:
		return state
	}
	return state + ": once the control plane is sure of that, it goes on without"
}
