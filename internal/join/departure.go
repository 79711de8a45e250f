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

// Departure follows a cluster out of the fleet, and keeps in mind what nobody removed
// there: the control plane lets the Works go of one that is not ready. Name and Hub are
// required.
type Departure struct {
	// Name of the cluster on the hub, which Hub reads.
	Name string
	Hub  client.Reader
	// Answers asks the member of a cluster in push mode whether it is there; nil asks
	// nobody. An agent is listened to by its Lease.
	Answers func(context.Context) error
	// Report is called every few seconds with what is waited for; nil reports nothing.
	Report func(line string)
	// Clock is the time; nil means the machine's.
	Clock clock.PassiveClock

	remaining map[string][]string // by Work: the objects that are still to be removed
	doubt     map[string][]string // of Works that have gone, and nobody knows yet by whom
	left      map[string][]string // of Works that have gone without them
	begun     bool
	pull      bool
	well      bool
	taken     bool

	voice    voice
	reported string
	when     time.Time
}

// voice is what is heard of a cluster.
type voice struct {
	at      time.Time // when it was last heard of; zero: never
	asked   time.Time
	mute    bool // it was asked, and did not answer
	renewed *metav1.MicroTime
	timeout time.Duration // how long it may be silent
}

const (
	// everySome is how often progress is reported, and a silent member asked again.
	everySome = 5 * time.Second
	// agentTimeout is how long an agent may be silent without a Lease that says so.
	agentTimeout = 20 * time.Second
	// answerTimeout is how long a member may take to answer.
	answerTimeout = 2 * time.Second
)

// Observe takes note of how far the cluster is; nil is one that is gone.
func (d *Departure) Observe(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	d.begin()
	d.begun = true
	if cluster != nil {
		d.pull = cluster.Spec.SyncMode == clusterv1alpha1.Pull
		ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		d.listen(ctx)
		d.well = outlook.Reached(d.lately(ctx, cluster))
		d.taken = d.taken || ready != nil && ready.Reason == clusterv1alpha1.ClusterClaimedReason
		if d.well { // only where that is not known, Works go by themselves
			clear(d.doubt)
		}
	}
	remaining, known, err := d.works(ctx, cluster == nil)
	if err != nil || !known {
		return err
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
	if cluster != nil {
		d.report(ctx)
	}
	return nil
}

// lately returns a cluster as it is by now: one in push mode that comes and goes is called unreachable for a while
// after it answers again, and what runs there is removed all the same.
func (d *Departure) lately(ctx context.Context, cluster *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil || ready.Reason != clusterv1alpha1.ClusterNotReachableReason || cluster.Spec.SyncMode != clusterv1alpha1.Push || d.Answers == nil {
		return cluster
	}
	d.begin()
	if d.listen(ctx); d.voice.mute {
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

// Begun reports whether the cluster was looked at: it leaves, whoever waits for that.
func (d *Departure) Begun() bool { return d.begun }

// Abandon says that what is held will not be removed by anybody.
func (d *Departure) Abandon() {
	d.begin()
	d.begun = true
	maps.Copy(d.left, d.remaining)
	clear(d.remaining)
}

// Left names what nobody removed, as far as the hub knows: "Deployment shop/web".
func (d *Departure) Left() []string {
	found := map[string]bool{}
	for _, objects := range d.left {
		for _, title := range objects {
			found[title] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Taken reports whether another control plane has the cluster, and with it what is left there.
func (d *Departure) Taken() bool { return d.taken }

// Silent returns for how long nothing was heard of the cluster: of its agent, or of a member
// that was asked. Zero is that nobody listens, or that it answers.
func (d *Departure) Silent() time.Duration {
	if d.voice.at.IsZero() || !d.pull && !d.voice.mute {
		return 0
	}
	return d.Clock.Since(d.voice.at)
}

// unheard reports whether nobody can have removed what went with the cluster. A member may
// have hung long before it was first asked; an agent is heard by itself.
func (d *Departure) unheard() bool {
	return d.voice.mute || d.Silent() > d.voice.timeout
}

// listen hears the agent, or asks the member.
func (d *Departure) listen(ctx context.Context) {
	switch {
	case d.pull:
		d.hear(ctx)
	case d.Answers != nil && d.Clock.Since(d.voice.asked) >= everySome:
		d.ask(ctx)
	}
}

// hear reads the agent's Lease. At first its time counts, by the agent's clock; then that
// it changes.
func (d *Departure) hear(ctx context.Context) {
	lease := &coordinationv1.Lease{}
	err := d.Hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: d.Name}, lease)
	if err != nil || lease.Spec.RenewTime == nil || d.voice.renewed.Equal(lease.Spec.RenewTime) {
		return // a Lease that cannot be read says nothing
	}
	now := d.Clock.Now()
	if d.voice.at = now; d.voice.renewed == nil && lease.Spec.RenewTime.Time.Before(now) {
		d.voice.at = lease.Spec.RenewTime.Time
	}
	d.voice.renewed, d.voice.timeout = lease.Spec.RenewTime, agentTimeout
	if of := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); of > 0 {
		d.voice.timeout = time.Duration(of) * time.Second / 2 //nolint:mnd // it is renewed in a quarter of it
	}
}

// ask asks the member. A refusal is an answer.
func (d *Departure) ask(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := d.Answers(short)
	now := d.Clock.Now()
	mute := err != nil && !slices.Contains(answers, apierrors.ReasonForError(err))
	if !mute || !d.voice.mute {
		d.voice.at = now
	}
	d.voice.asked, d.voice.mute, d.voice.timeout = now, mute, everySome
}

// answers are refusals, of the member or of the control plane before it.
var answers = []metav1.StatusReason{
	metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonNotFound, metav1.StatusReasonMethodNotAllowed,
}

// works lists the Works that hold what is to be removed. Who may not see them does not
// know: an agent's rights go with its cluster.
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

// report says how far it is, when that is news and some time has passed.
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
		by, _ = held(ctx, d.Hub, d.Name) // an agent may not see bindings
	}
	state := d.state(ran, by)
	switch {
	case state == d.reported:
		return
	case d.when.IsZero() && !d.pull, len(d.remaining) == 0 && by == "" && d.reported == "": // most are gone before anybody wants to know
		d.when = now
		return
	}
	d.reported, d.when = state, now
	d.Report(state)
}

// state says what is waited for: what so many Works had the cluster run, or what is placed there still.
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
	case silent > 0 && silent >= d.voice.timeout-everySome:
		state += fmt.Sprintf("; %s for %s", quiet, silent.Round(time.Second))
	case !d.well:
		state += ", which does not say that it is well"
	default:
		return state
	}
	return state + ": once the control plane is sure of that, it goes on without"
}
