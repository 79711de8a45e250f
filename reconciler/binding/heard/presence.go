package heard

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Presence finds out whether clusters for which others are left are reachable now. An answer counts only if
// it is newer than the binding's question. Use NewPresence.
type Presence struct {
	clock   clock.PassiveClock
	answers func(cluster string, asked time.Time) (since time.Time, yes bool, again time.Duration)

	mu sync.Mutex
	// asked is since when a binding waits for the answer of each cluster.
	asked map[client.ObjectKey]map[string]time.Time
}

// NewPresence returns one that asks answers of clusters.
func NewPresence(now clock.PassiveClock, answers func(string, time.Time) (time.Time, bool, time.Duration)) *Presence {
	return &Presence{clock: now, answers: answers, asked: map[client.ObjectKey]map[string]time.Time{}}
}

// Ask returns since when a cluster has been reachable, and whether it has answered since the binding
// first asked; if not, when to ask again. After an answer, the next call is a new question.
func (p *Presence) Ask(binding client.ObjectKey, cluster string) (since time.Time, yes bool, again time.Duration) {
	p.mu.Lock()
	asked, waits := p.asked[binding][cluster]
	if !waits {
		if p.asked[binding] == nil {
			p.asked[binding] = map[string]time.Time{}
		}
		asked = p.clock.Now()
		p.asked[binding][cluster] = asked
	}
	p.mu.Unlock()
	if since, yes, again = p.answers(cluster, asked); yes {
		p.Forget(binding, cluster)
	}
	return since, yes, again
}

// Forget ends the question of a binding for a cluster.
func (p *Presence) Forget(binding client.ObjectKey, cluster string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.asked[binding], cluster); len(p.asked[binding]) == 0 {
		delete(p.asked, binding)
	}
}

// End ends all questions of a binding.
func (p *Presence) End(binding client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.asked, binding)
}
