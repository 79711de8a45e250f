package etcd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
)

// TestAStoreIsOpenOnce checks that opening a store twice fails with an error, and leaves the
// first one and its socket alone.
func TestAStoreIsOpenOnce(t *testing.T) {
	dir := filepath.Join(shortTempDir(t), "e")
	first := start(t, dir)
	put(t, first, "a", "1")
	refused(t, dir)
	late, err := clientv3.New(clientv3.Config{Endpoints: first.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer, err := late.Get(ctx, "a"); err != nil || answer.Count != 1 {
		t.Errorf("afterwards somebody new is answered by the first with %v, %v", answer, err)
	}
	first.Stop()

	database, err := os.Open(etcd.Database(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(database.Fd()), syscall.LOCK_EX); err != nil { // as an older version has it
		t.Fatal(err)
	}
	refused(t, dir)
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, start(t, dir), "b", "1")
}

// refused checks that starting a store that is already open fails at once.
func refused(t *testing.T, dir string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := etcd.Start(context.WithoutCancel(t.Context()), etcd.Options{DataDir: dir, UnsafeNoFsync: true})
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, datadir.ErrInUse) {
			t.Fatalf("a second start ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a second start does not end")
	}
}
