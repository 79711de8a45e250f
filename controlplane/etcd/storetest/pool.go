package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// Server is one that a Pool lends.
type Server interface {
	// Folder is where its data is; its store is in the folder "etcd" there.
	Folder() string
	// Stop ends it, and removes the folder.
	Stop() error
}

// Pool lends servers to tests, one to each at a time. There are as many as tests have
// had at the same time.
type Pool[S Server] struct {
	mu   sync.Mutex
	idle map[string][]lent[S]
}

// lent is a server with what its store held at first.
type lent[S Server] struct {
	server S
	store  *store
}

// Lend returns a server of a sort that is a test's own until the test ends. One of a test that failed is
// lent to no other.
func (p *Pool[S]) Lend(t testing.TB, sort string, start func(context.Context) (S, error)) S {
	t.Helper()
	l, err := p.take(t.Context(), sort, start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.giveBack(context.WithoutCancel(t.Context()), t, sort, l); err != nil {
			t.Errorf("end a server: %v", err)
		}
	})
	return l.server
}

func (p *Pool[S]) take(ctx context.Context, sort string, start func(context.Context) (S, error)) (lent[S], error) {
	p.mu.Lock()
	if n := len(p.idle[sort]); n > 0 {
		l := p.idle[sort][n-1]
		p.idle[sort] = p.idle[sort][:n-1]
		p.mu.Unlock()
		return l, nil
	}
	p.mu.Unlock()
	server, err := start(ctx)
	if err != nil {
		return lent[S]{}, err
	}
	store, err := openStore(ctx, server.Folder())
	if err != nil {
		return lent[S]{}, errors.Join(err, server.Stop())
	}
	return lent[S]{server: server, store: store}, nil
}

// giveBack puts back what a test has left. A server that cannot be put back is lent no more:
// that is no fault of the test.
func (p *Pool[S]) giveBack(ctx context.Context, t testing.TB, sort string, l lent[S]) error {
	if t.Failed() {
		return l.end()
	}
	if err := l.store.putBack(ctx); err != nil {
		t.Logf("the next test gets another server: %v", err)
		return l.end()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = map[string][]lent[S]{}
	}
	p.idle[sort] = append(p.idle[sort], l)
	return nil
}

func (l lent[S]) end() error { return errors.Join(l.store.close(), l.server.Stop()) }

// Stop ends all servers; none is lent any more.
func (p *Pool[S]) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []error
	for _, idle := range p.idle {
		for _, l := range idle {
			all = append(all, l.end())
		}
	}
	p.idle = nil
	return errors.Join(all...)
}
