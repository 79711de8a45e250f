package setback

import (
	"context"

	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ErrNotYet is what Heard errs with while the hub's watch is waited for.
var ErrNotYet = errNotYet

// Meet reports a cluster in pull mode, Alive of a sign of life of its agent, and Say of
// what it says.
func (k *Keeper) Meet(cluster string)                   { k.agents.meet(cluster) }
func (k *Keeper) Alive(cluster string)                  { k.agents.alive(cluster) }
func (k *Keeper) Say(cluster string, r hubclaim.Report) { k.agents.learn(cluster, r) }
func (k *Keeper) CallRoll()                             { k.agents.callRoll() }
func (k *Keeper) WeighAgents(ctx context.Context) error { return k.agents.weigh(ctx, k) }
