package siblings

import (
	"context"
	"fmt"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A sibling is built for the sake of others for at most longestBuild. One that takes longer is not tried again for them for slowFor, unless
// it is changed: its own runs have the time that its spec asks for, and tell what it wants.
const (
	longestBuild = 15 * time.Second
	slowFor      = 5 * time.Minute
)

// InTime returns a Build that gives up where a Kustomization takes long, so that one with thousands of files, or an endless patch,
// does not use up the time of all others of its source.
func InTime(build Build, clk clock.PassiveClock) Build {
	return newBounded(build, clk, longestBuild).wants
}

// bounded gives up after a limit, and remembers what was slow.
type bounded struct {
	build Build
	clock clock.PassiveClock
	limit time.Duration

	mu   sync.Mutex
	slow map[client.ObjectKey]overrun
}

func newBounded(build Build, clk clock.PassiveClock, limit time.Duration) *bounded {
	return &bounded{build: build, clock: clk, limit: limit, slow: map[client.ObjectKey]overrun{}}
}

// overrun is a Kustomization, as it was, that took too long at an artifact.
type overrun struct {
	uid        types.UID
	generation int64
	at         Artifact
	seen       time.Time
}

func (b *bounded) wants(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (Wants, error) {
	key := client.ObjectKeyFromObject(ks)
	failure := fmt.Errorf("Kustomization %s takes longer than %s to be built", key, b.limit) //nolint:staticcheck // begins with the name of a kind
	now := overrun{uid: ks.UID, generation: ks.Generation, at: at, seen: b.clock.Now()}
	if b.is(key, now) {
		return Wants{}, failure
	}
	limited, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	wants, err := b.build(limited, ks, at)
	if err == nil || limited.Err() == nil || ctx.Err() != nil {
		return wants, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow[key] = now
	return Wants{}, failure
}

// is reports whether this took too long a while ago, and drops what is older.
func (b *bounded) is(key client.ObjectKey, now overrun) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, was := range b.slow {
		if now.seen.Sub(was.seen) > slowFor {
			delete(b.slow, of)
		}
	}
	was, ok := b.slow[key]
	was.seen = now.seen
	return ok && was == now
}
