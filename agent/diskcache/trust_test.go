package diskcache_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"

	"github.com/flotilla-io/flotilla/agent/diskcache"
	"github.com/flotilla-io/flotilla/agent/kinds"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// TestAFolderThatIsNotTrusted: nothing is known of a folder that may be older than the
// member before the hub is back, or it is trusted after all.
func TestAFolderThatIsNotTrusted(t *testing.T) {
	for name, after := range map[string]struct {
		do   func(h *hub, trust *atomic.Bool)
		want []string
	}{
		"the hub is back":    {func(h *hub, _ *atomic.Bool) { h.put("a", 2, ""); h.comeBack() }, []string{"a/2"}},
		"the member answers": {func(_ *hub, trust *atomic.Bool) { trust.Store(true) }, []string{"a/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, h := t.TempDir(), newHub()
			h.put("a", 1, "")
			run(t, dir, h).stop()
			h.leave(errors.New("away"))
			var trust atomic.Bool
			asked := make(chan struct{}, 1)
			s, err := diskcache.Open(diskcache.Options{Dir: dir, Scheme: kinds.Scheme(), Log: logr.Discard(), Again: 50 * time.Millisecond, Trust: func(context.Context) error {
				select {
				case asked <- struct{}{}:
				default:
				}
				if trust.Load() {
					return nil
				}
				return errors.New("it is older")
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			informer := s.NewInformer(h, &workv1alpha1.Work{}, 0, cache.Indexers{})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { informer.RunWithContext(ctx) })
			defer running.Wait()
			defer cancel()
			<-asked
			<-asked
			if informer.HasSynced() || len(informer.GetStore().List()) > 0 {
				t.Error("an older folder is taken for what the hub says")
			}
			after.do(h, &trust)
			eventually(t, after.want, func() []string { return known(informer.GetStore().List()) })
		})
	}
}

// TestADiskThatTakesNothing: what the program sees and the disk did not take keeps it
// from starting from disk, until the disk has all of it.
func TestADiskThatTakesNothing(t *testing.T) {
	dir, h := t.TempDir(), newHub()
	h.put("a", 1, "")
	s := run(t, dir, h)
	store := filepath.Join(dir, "work.v1alpha1.work.karmada.io")
	file := someObject(t, store, "a")
	older, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	h.put("a", 2, "")
	eventually(t, []string{"a/2"}, func() []string { return known(s.informer.GetStore().List()) })
	if _, err := os.Stat(filepath.Join(store, "list")); !errors.Is(err, os.ErrNotExist) || s.Current() {
		t.Errorf("a folder that lacks something is started from: %v", err)
	}
	s.Flush()
	if s.Current() {
		t.Error("what is missing still counts as kept")
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	write(t, file, string(older))
	h.put("b", 1, "")
	eventually(t, []string{"a/2", "b/1"}, func() []string { return known(s.informer.GetStore().List()) })
	if _, err := os.Stat(filepath.Join(store, "list")); !errors.Is(err, os.ErrNotExist) || s.Current() {
		t.Errorf("what was missed is forgotten with the next change: %v", err)
	}
	s.Flush()
	if !s.Current() {
		t.Error("a disk that takes everything again is not used")
	}
	s.stop()
	h.leave(errors.New("away"))
	again := run(t, dir, h)
	eventually(t, []string{"a/2", "b/1"}, func() []string { return known(again.informer.GetStore().List()) })
}

// TestHowFarAFolderGoes reads back what was kept of that.
func TestHowFarAFolderGoes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	none, err := s.Seen()
	if err := errors.Join(err, s.See("7"), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, nil)
	defer s.Close()
	if seven, err := s.Seen(); none != "" || seven != "7" || err != nil {
		t.Errorf("it says %q, and then %q, %v", none, seven, err)
	}
	write(t, filepath.Join(dir, "seen"), "8")
	if got, err := s.Seen(); err == nil {
		t.Errorf("what is damaged is read as %q", got)
	}
}
