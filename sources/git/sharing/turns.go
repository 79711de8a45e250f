package sharing

import (
	"context"
	"sync"
)

// Turns lets the first of those who do the same go ahead, so that the others find what it leaves behind. Use NewTurns. It may be
// used from several goroutines.
type Turns struct {
	mu    sync.Mutex
	doing map[any]chan struct{}
}

// NewTurns returns Turns that nobody has.
func NewTurns() *Turns { return &Turns{doing: map[any]chan struct{}{}} }

// Begin waits until the one who has begun with this key has ended, if there is one. The caller calls end at its own end. Those
// who have waited go on side by side. It returns the error of a context that ends meanwhile.
func (t *Turns) Begin(ctx context.Context, key any) (end func(), err error) {
	t.mu.Lock()
	before, busy := t.doing[key]
	if !busy {
		done := make(chan struct{})
		t.doing[key] = done
		t.mu.Unlock()
		return func() {
			t.mu.Lock()
			delete(t.doing, key)
			t.mu.Unlock()
			close(done)
		}, nil
	}
	t.mu.Unlock()
	select {
	case <-before:
		return func() {}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
