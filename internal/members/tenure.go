package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ErrClaimed says that a member belongs to another hub, or that it is not known which
// hub it belongs to.
var ErrClaimed = errors.New("the cluster belongs to another hub")

var (
	// ErrPushed says that the hub applies in the member itself: no agent may act there then.
	ErrPushed = errors.New("the control plane applies in this cluster itself, in push mode")
	// ErrAgent says that an agent still acts in a member.
	ErrAgent = errors.New("an agent acts in this cluster: it is waited for until it lets go, or has been silent for some time")
)

// Yielder is a Marker that releases the member when it turns out to belong to another hub.
type Yielder interface{ Yield() }

// Marker checks and updates the marks of members: how far they have seen the store of their hub.
type Marker interface {
	// Weigh is called with the mark of a member before anything is written there; nil is
	// none. After an error nothing is written.
	Weigh(ctx context.Context, cluster string, mark *hubclaim.Mark) error
	// Next returns the mark that is to be written to the member; nil if that is the one that
	// it has.
	Next(ctx context.Context, cluster string, have *hubclaim.Mark) (*hubclaim.Mark, error)
}

// tenure is a hub's hold on a member: the claim in the member's namespace
// kube-system, which is read with the member's identity, and by no request of its
// own.
type tenure struct {
	clients kubernetes.Interface
	// claimant returns the hub that claims the member; nil, and the zero value, claim nothing.
	claimant func() hubclaim.Claimant
	// marks checks the mark that the member carries of the hub; nil checks nothing.
	marks Marker

	mu       sync.Mutex
	standing hubclaim.Standing
	fault    string
	refused  int  // probes since a write was refused
	released bool // the member was released
	shown    shown

	clock clock.PassiveClock
	agent agentLease
	home  homeSeen
}

// Standing returns what may be concluded about objects in the member.
func (t *tenure) Standing() hubclaim.Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.standing
}

// Unclaimed is why the member refused the claim; empty if it did not.
func (t *tenure) Unclaimed() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fault
}

const (
	// claimTries is how often the write of a claim is repeated when somebody else changed
	// the namespace meanwhile.
	claimTries = 3
	// refusedPause is how many probes pass before a write that was refused is tried
	// again.
	refusedPause = 30
)

// claim makes sure that the member belongs to this hub: it returns ErrClaimed if it belongs to
// another one, and claims it if it belongs to none. A member that refuses the write
// of a claim is used all the same; Unclaimed returns the reason.
func (t *tenure) claim(ctx context.Context, system *corev1.Namespace) error {
	if t.claimant == nil {
		return nil
	}
	claimant := t.claimant()
	if claimant.Hub == "" {
		return nil
	}
	for try := 1; ; try++ {
		err := t.claimAs(ctx, claimant, system)
		if yielder, ok := t.marks.(Yielder); ok && (errors.Is(err, ErrClaimed) || errors.Is(err, ErrPushed) || errors.Is(err, ErrLeft)) {
			yielder.Yield()
		}
		if err == nil && claimant.Mode == hubclaim.Push {
			err = t.clear(ctx) // agents read the claim after they have acquired their Lease: one of the two sees the other
		}
		if !apierrors.IsConflict(err) || try == claimTries {
			return err
		}
		if system, err = t.clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read the cluster's claim: %w", err)
		}
	}
}

func (t *tenure) claimAs(ctx context.Context, claimant hubclaim.Claimant, system *corev1.Namespace) error {
	current, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	switch {
	case err != nil:
		return fmt.Errorf("%w: the annotation %s of its namespace %s is no claim: remove it there", ErrClaimed, clusterv1alpha1.ClaimAnnotation, system.Name)
	case hubclaim.Judge(current, claimant) == hubclaim.Anothers:
		return fmt.Errorf("%w: it is %s", ErrClaimed, excerpt.Bytes(current.Describe(), mostExcerpt))
	}
	if current.Pushed(claimant) {
		return ErrPushed
	}
	if last := letGo(system); last != nil && last.Hub == claimant.Hub && last.Mode == hubclaim.Pull && claimant.Alone {
		return ErrLeft // the agent that asks for the place holds the Lease alone
	}
	wanted, changed := hubclaim.Take(current, claimant)
	if t.marks != nil { // a hub that may not act yet must know, too, that its store was restored
		if err := t.marks.Weigh(ctx, claimant.Cluster, wanted.Mark); err != nil {
			return err
		}
	}
	turn, moves, err := t.enter(system, wanted, claimant)
	switch {
	case err != nil:
		return err
	case turn != hubclaim.Acts:
		return t.elsewhere(ctx, system, wanted, moves, turn)
	}
	changed = changed || moves
	if t.marks != nil {
		if next, err := t.marks.Next(ctx, claimant.Cluster, wanted.Mark); err == nil && next != nil { // otherwise at the next probe
			wanted.Mark, changed = next, true
		}
	}
	if !changed {
		t.record(hubclaim.StandingOf(wanted, claimant), "")
		return nil
	}
	contested := moves && current != nil && current.Home != nil // another place acts there, or asks to
	if !contested && !t.due() {
		t.record(hubclaim.StandingOf(current, claimant), t.Unclaimed())
		return nil
	}
	patch, err := ClaimPatch(system, wanted)
	if err != nil {
		return err
	}
	claimed, err := t.clients.CoreV1().Namespaces().Patch(ctx, system.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: ownership.FieldManager})
	var answer apierrors.APIStatus
	switch {
	case err == nil:
		t.observe(claimed)
		t.moved(wanted.Home, moves)
		t.record(hubclaim.StandingOf(wanted, claimant), "")
	case apierrors.IsConflict(err) || !errors.As(err, &answer):
		return err
	case contested && current.Home.Elsewhere(claimant.Place):
		return fmt.Errorf("%w, and what it says of that cannot be changed: %w", ErrMoving, err)
	case contested:
		return fmt.Errorf("%w: %w", ErrContested, err)
	default: // the member refuses: that is no reason to leave its workloads alone
		t.record(hubclaim.StandingOf(current, claimant), excerpt.Bytes(err.Error(), mostExcerpt))
	}
	return nil
}

// agentLease is the Lease of the agent in a member, as a hub in push mode sees it.
type agentLease struct {
	clear   bool      // no agent acts there, nor will one
	version string    // of the Lease as last seen
	since   time.Time // when this version was seen first
}

// clear returns an error while an agent may act in a member in push mode. It is called once
// per connection: an agent that starts later finds the claim.
func (t *tenure) clear(ctx context.Context) error {
	t.mu.Lock()
	clear := t.agent.clear
	t.mu.Unlock()
	if clear {
		return nil
	}
	lease, err := t.clients.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, clusterv1alpha1.AgentLease, metav1.GetOptions{})
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		t.agent.clear = true
		return nil
	case err != nil:
		return fmt.Errorf("read whether an agent acts in the cluster: %w", err)
	}
	claimant := ptr.Deref(lease.Spec.HolderIdentity, "")
	if t.agent.version != lease.ResourceVersion {
		t.agent.version, t.agent.since = lease.ResourceVersion, t.clock.Now()
	}
	lasts := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	if claimant == "" || t.clock.Since(t.agent.since) >= lasts {
		t.agent.clear = true
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAgent, claimant)
}

// mostExcerpt is how many bytes of a member's error are shown.
const mostExcerpt = 512

// due reports whether a claim is to be written now: not at each probe where that was
// refused, and never once the member was released.
func (t *tenure) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault == "" || t.refused >= refusedPause {
		t.refused = 0
		return !t.released
	}
	t.refused++
	return false
}

func (t *tenure) record(s hubclaim.Standing, fault string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.standing, t.fault = s, fault
}

// Release removes this hub's claim from the member, and releases it: another hub
// may claim it. The claim of another hub stays, and that of this hub where it acts from
// another place.
func (t *tenure) Release(ctx context.Context) error {
	if t.claimant == nil || t.claimant().Hub == "" {
		return nil
	}
	t.mu.Lock()
	t.released = true
	t.mu.Unlock()
	system, err := t.clients.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the cluster's claim: %w", err)
	}
	current, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation])
	if err != nil || current == nil || hubclaim.Judge(current, t.claimant()) != hubclaim.Ours || current.Home.Elsewhere(t.claimant().Place) {
		return nil
	}
	patch, err := ClaimPatch(system, nil)
	if err != nil {
		return err
	}
	_, err = t.clients.CoreV1().Namespaces().Patch(ctx, system.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: ownership.FieldManager})
	if err != nil {
		return fmt.Errorf("release the cluster's claim: %w", err)
	}
	return nil
}

// ClaimPatch returns the JSON merge patch that writes a claim to a member's
// namespace kube-system as it was read, or removes it if claim is nil: then it records from
// where the releasing hub acted, or that an agent did, so that no copy of them claims it again.
// The record of an agent stays until the next one's mark distinguishes its folder from older ones.
func ClaimPatch(system *corev1.Namespace, current *hubclaim.Claim) ([]byte, error) {
	var text, last any
	if current != nil {
		text = current.Encode()
		if leftBefore(system, current) != nil {
			last = system.Annotations[clusterv1alpha1.ReleasedAnnotation]
		}
	} else if was, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation]); err == nil && was != nil {
		switch {
		case was.Home != nil:
			last = (&hubclaim.Claim{Hub: was.Hub, Home: &hubclaim.Home{At: was.Home.At}}).Encode()
		case was.Mode == hubclaim.Pull:
			last = (&hubclaim.Claim{Hub: was.Hub, Mode: was.Mode}).Encode()
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": system.UID, "resourceVersion": system.ResourceVersion,
		"annotations": map[string]any{clusterv1alpha1.ClaimAnnotation: text, clusterv1alpha1.ReleasedAnnotation: last},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the cluster's claim: %w", err)
	}
	return patch, nil
}
