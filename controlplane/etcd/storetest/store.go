package storetest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
)

const (
	// stillLooks is how many looks in a row, stillPause apart, have to find nothing that is
	// left before a store counts as put back: controllers that have just lost an object may
	// write once more.
	stillReads = 5
	stillPause = 30 * time.Millisecond
	// timeout is how long a store may take to be still.
	timeout = 20 * time.Second
	// most is how many keys are written at once; etcd takes 128.
	most = 100
)

// own are prefixes of what a server keeps of itself: it is never put back.
var own = []string{
	"compact_rev_key",
	"/registry/apiserver.openapi.k8s.io/",
	"/registry/flowschemas/",
	"/registry/leases/kube-node-lease/",
	"/registry/leases/kube-system/apiserver-",
	"/registry/masterleases/",
	"/registry/prioritylevelconfigurations/",
}

// content is what a store holds: values by their keys, but what is a server's own.
type content map[string]string

// store is one that runs, and what it held at first.
type store struct {
	client *clientv3.Client
	first  content
}

// openStore returns the store of a server whose data is in a folder, once it is still.
func openStore(ctx context.Context, folder string) (*store, error) {
	address, err := etcd.AddressIn(filepath.Join(folder, "etcd"))
	if err != nil {
		return nil, err
	}
	client, err := etcd.Connect(address)
	if err != nil {
		return nil, err
	}
	s := &store{client: client}
	if s.first, err = s.still(ctx); err != nil {
		_ = client.Close() // nothing was written
		return nil, err
	}
	return s, nil
}

func (s *store) close() error { return s.client.Close() }

// still returns what the store holds once nothing of it changes any more.
func (s *store) still(ctx context.Context) (content, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last, err := s.read(ctx)
	for reads := 0; err == nil && reads < stillReads; {
		if err = pause(ctx); err != nil {
			break
		}
		var now content
		if now, err = s.read(ctx); err != nil {
			break
		}
		if reads++; !differ(last, now).none() {
			last, reads = now, 0
		}
	}
	if err != nil {
		return nil, fmt.Errorf("what the store holds: %w", err)
	}
	return last, nil
}

func (s *store) read(ctx context.Context) (content, error) {
	answer, err := s.client.Get(ctx, "", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := make(content, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		key := string(kv.Key)
		if !slices.ContainsFunc(own, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			out[key] = string(kv.Value)
		}
	}
	return out, nil
}

// putBack makes the store hold what it did at first. What a server writes anew into an
// object that was put back is the server's: it is not put back twice.
func (s *store) putBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	restored := map[string]bool{}
	for reads := 0; reads < stillReads; reads++ {
		now, err := s.read(ctx)
		if err != nil {
			return fmt.Errorf("what the store holds: %w", err)
		}
		todo := differ(s.first, now)
		todo.changed = slices.DeleteFunc(todo.changed, func(key string) bool { return restored[key] })
		if !todo.none() {
			reads = 0
			for _, key := range todo.changed {
				restored[key] = true
			}
			if err := s.write(ctx, s.operations(todo)); err != nil {
				return fmt.Errorf("put back %s: %w", todo, err)
			}
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("put back what was written again and again, at last %s: %w", todo, err)
		}
	}
	return nil
}

func (s *store) operations(todo difference) []clientv3.Op {
	var out []clientv3.Op
	for _, key := range todo.added {
		out = append(out, clientv3.OpDelete(key))
	}
	for _, key := range slices.Concat(todo.gone, todo.changed) {
		out = append(out, clientv3.OpPut(key, s.first[key]))
	}
	return out
}

func (s *store) write(ctx context.Context, operations []clientv3.Op) error {
	for chunk := range slices.Chunk(operations, most) {
		if _, err := s.client.Txn(ctx).Then(chunk...).Commit(); err != nil {
			return err
		}
	}
	return nil
}

// difference is what keys a store has, has no more, and has with another value.
type difference struct{ added, gone, changed []string }

// differ compares what a store holds with what it held.
func differ(before, now content) difference {
	var d difference
	for key, value := range now {
		old, had := before[key]
		switch {
		case !had:
			d.added = append(d.added, key)
		case old != value:
			d.changed = append(d.changed, key)
		}
	}
	for key := range before {
		if _, has := now[key]; !has {
			d.gone = append(d.gone, key)
		}
	}
	for _, keys := range [][]string{d.added, d.gone, d.changed} {
		slices.Sort(keys)
	}
	return d
}

func (d difference) none() bool { return len(d.added)+len(d.gone)+len(d.changed) == 0 }

func (d difference) String() string {
	return fmt.Sprintf("added %q, gone %q, changed %q", d.added, d.gone, d.changed)
}

// pause waits a little.
func pause(ctx context.Context) error {
	timer := time.NewTimer(stillPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
