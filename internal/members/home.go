package members

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/ownership"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

var (
	// ErrElsewhere says that this hub acts in a member from another place: one of the two
	// is a copy.
	ErrElsewhere = errors.New("another copy of this control plane acts in this cluster, from another folder or machine")
	// ErrMoving says that this hub may still act there from another place.
	ErrMoving = errors.New("this control plane was in another folder or machine when it last acted in this cluster: it waits to see whether one still runs there")
	// ErrLetGo says that this hub has released a member from another place.
	ErrLetGo = errors.New("this control plane has taken this cluster off from another folder or machine: flotilla join takes it on again")
	// ErrLeft says that a member in pull mode has left the fleet, and that the agent that
	// asks acts on outdated records.
	ErrLeft = errors.New("this cluster was taken out of the fleet: nothing is put back there from what the agent has kept; flotilla register takes it in again")
	// ErrContested says that a copy of the hub asks to act there, and cannot be shown that
	// this one does.
	ErrContested = errors.New("a copy of this control plane asks to act in this cluster, and cannot be told not to")
)

// homeSeen is the Home in a member's claim as last seen there.
type homeSeen struct {
	last    *hubclaim.Home
	since   time.Time
	asked   bool   // this process has
	refused string // the place that asked this process; empty: none has
	other   string // the last other place that acted; empty: none has
}

// glance returns for how long a Home has not changed.
func (t *tenure) observation(home *hubclaim.Home) hubclaim.Observation {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if s := &t.home; s.since.IsZero() || !s.last.Same(home) {
		s.last, s.since = home, now
	}
	return hubclaim.Observation{Still: now.Sub(t.home.since), Asked: t.home.asked}
}

// enter reports whether the hub may act in a member with this claim, and sets its home as it
// is to be then. Moves says that it differs. A claim that no longer has a Home,
// since somebody removed it, is read as before. Errors: ErrLetGo.
func (t *tenure) enter(system *corev1.Namespace, wanted *hubclaim.Claim, claimant hubclaim.Claimant) (turn hubclaim.Turn, moves bool, err error) {
	was := wanted.Home
	t.mu.Lock()
	if was == nil && t.home.other != "" && claimant.Place != "" {
		was = &hubclaim.Home{At: t.home.other}
	}
	if was.Elsewhere(claimant.Place) {
		t.home.other = was.At
	}
	t.mu.Unlock()
	switch last := letGo(system); {
	case last == nil || last.Hub != claimant.Hub:
	case last.Home.Elsewhere(claimant.Place):
		return hubclaim.Refused, false, fmt.Errorf("%w: it was %s", ErrLetGo, excerpt.Bytes(last.Home.At, mostExcerpt))
	}
	home, turn := was.Enter(claimant.Place, t.observation(was))
	moves = !home.Same(wanted.Home)
	wanted.Home = home
	if turn == hubclaim.Acts {
		t.mu.Lock()
		t.home.other = ""
		t.mu.Unlock()
	}
	return turn, moves, nil
}

// letGo is the claim that the last hub removed from a member that has none, or none yet that
// has a Home; nil: there was none, or it had no Home.
func letGo(system *corev1.Namespace) *hubclaim.Claim {
	text := system.Annotations[clusterv1alpha1.ClaimAnnotation]
	if text == "" {
		return lastOf(system)
	}
	claim, err := hubclaim.Parse(text)
	if err != nil {
		return nil
	}
	return leftBefore(system, claim)
}

// leftBefore is the claim that an agent removed before the one that the same hub's next
// agent has, while that has no mark; nil: there is none.
func leftBefore(system *corev1.Namespace, claim *hubclaim.Claim) *hubclaim.Claim {
	last := lastOf(system)
	if last == nil || claim == nil || last.Mode != hubclaim.Pull || claim.Mode != hubclaim.Pull || last.Hub != claim.Hub || claim.Mark != nil {
		return nil
	}
	return last
}

func lastOf(system *corev1.Namespace) *hubclaim.Claim {
	last, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ReleasedAnnotation])
	if err != nil {
		return nil
	}
	return last
}

// moved records what was written.
func (t *tenure) moved(home *hubclaim.Home, changed bool) {
	if !changed || home == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.home.last, t.home.since = home, t.clock.Now()
	t.home.asked = t.home.asked || home.Asks != ""
	if last := len(home.Refused) - 1; last >= 0 && home.Asks == "" {
		t.home.refused = home.Refused[last]
	}
}

// Refused is the place from which a copy of this hub has asked to act in the member since this one
// is connected to it; empty: none has.
func (t *tenure) Refused() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return excerpt.Bytes(t.home.refused, mostExcerpt)
}

// elsewhere asks in the member whether the hub still acts from another place, where it has not
// asked yet, and returns why nothing may be written there meanwhile.
func (t *tenure) elsewhere(ctx context.Context, system *corev1.Namespace, wanted *hubclaim.Claim, changed bool, turn hubclaim.Turn) error {
	fault := ErrMoving
	if turn == hubclaim.Refused {
		fault = ErrElsewhere
	}
	fault = fmt.Errorf("%w: it was %s", fault, excerpt.Bytes(wanted.Home.At, mostExcerpt))
	if !changed {
		return fault
	}
	patch, err := ClaimPatch(system, wanted)
	if err != nil {
		return err
	}
	claimed, err := t.clients.CoreV1().Namespaces().Patch(ctx, system.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: ownership.FieldManager})
	switch {
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		return fmt.Errorf("%w, and cannot be asked: %w", fault, err)
	}
	t.observe(claimed)
	t.moved(wanted.Home, true)
	return fault
}
