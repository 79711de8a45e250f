package scheduler

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

// mostMoves is how many moves are followed to see how they end.
const mostMoves = 60

// recentMoves holds the last moves, the oldest first. After a start it is filled with the moves that are still under
// way (found). The zero value is ready.
type recentMoves struct {
	// by says for how long moves are followed.
	by    failover.Judging
	mu    sync.Mutex
	moves []move
}

type move struct {
	of client.ObjectKey
	// title names the template, such as "Deployment shop/web".
	title string
	failover.Moved
}

func moveOf(b workv1alpha2.Binding, seen failover.Moved) move {
	ref := b.BindingSpec().Resource
	return move{client.ObjectKeyFromObject(b), ref.Kind + " " + strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"), seen}
}

// add records the move of b by a decision, if it evicts anything; b is as it was before.
func (m *recentMoves) add(b workv1alpha2.Binding, decision placement.Decision, now time.Time) {
	if len(decision.Evicts) == 0 {
		return
	}
	if seen, some := failover.MovedTo(b, decision.Evicts, decision.Clusters, now); some {
		m.note(moveOf(b, seen))
	}
}

// found records the move that is under way for b, which was made before the start.
func (m *recentMoves) found(b workv1alpha2.Binding) {
	if seen, some := failover.Underway(b); some {
		m.note(moveOf(b, seen))
	}
}

// note records a move. It replaces an earlier one of the same binding, whose outcome means nothing any more.
func (m *recentMoves) note(one move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moves = append(slices.DeleteFunc(m.moves, func(other move) bool { return other.of == one.of }), one)
	slices.SortStableFunc(m.moves, func(a, b move) int { return a.At.Compare(b.At) })
	m.moves = m.moves[max(len(m.moves)-mostMoves, 0):]
}

// outcomes counts the outcomes of the moves as they are now. It drops moves that are over. A binding that cannot be
// read counts as waiting.
func (m *recentMoves) outcomes(ctx context.Context, hub client.Reader, now time.Time) failover.Outcomes {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out failover.Outcomes
	var kept []move
	for _, one := range m.moves {
		b, found, err := bindings.Get(ctx, hub, one.of)
		moveState := failover.MoveWaiting
		if err == nil {
			if !found {
				b = nil
			}
			moveState = one.StateOf(b, m.by, now)
		}
		if moveState == failover.MoveOver {
			continue
		}
		one.Well = one.Well || moveState == failover.MoveHealthy
		out.Add(moveState)
		if moveState == failover.MoveIll && (out.Such == "" || one.title < out.Such) {
			out.Such = one.title
		}
		kept = append(kept, one)
	}
	m.moves = kept
	return out
}
