package etcd

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
)

// TestFaults checks that a term that etcd cannot find in a new store is not logged as an error.
func TestFaults(t *testing.T) {
	var reported []string
	log := funcr.New(func(_, args string) { reported = append(reported, args) }, funcr.Options{})
	store := newLog(log, "/data", &atomic.Bool{})
	store.Error("failed to update storage version", zap.Error(errors.New("cannot detect storage schema version: missing term information")))
	store.Error("failed to update storage version", zap.Error(errors.New("the disk is gone")))
	store.Warn("slow fdatasync")
	want := []string{`"msg"="The store: failed to update storage version" "error"="the disk is gone" "dir"="/data"`}
	if diff := cmp.Diff(want, reported); diff != "" {
		t.Errorf("it says (-want +got):\n%s", diff)
	}
}
