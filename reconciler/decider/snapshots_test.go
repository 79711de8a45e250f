package decider

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

func TestSnapshots(t *testing.T) {
	lists := 0
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster("m1")).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	}).Build()
	s := newSnapshots(hub)
	read := func() []string {
		t.Helper()
		snap, err := s.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snap.Names()
	}
	got := [][]string{read(), read()}
	if err := hub.Create(t.Context(), cluster("m2")); err != nil {
		t.Fatal(err)
	}
	s.Invalidate()
	got = append(got, read(), read())
	if diff := cmp.Diff([][]string{{"m1"}, {"m1"}, {"m1", "m2"}, {"m1", "m2"}}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if lists != 2 {
		t.Errorf("clusters were listed %d times, want once per change", lists)
	}
}

// What nobody may get once a change was announced is a snapshot from before: whoever asks
// after that is not asked again.
func TestNoSnapshotIsFromBeforeAChangeThatWasAnnounced(t *testing.T) {
	var stored, announced atomic.Int64
	hub := versions{&stored}
	s := newSnapshots(hub)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := announced.Load()
				snap, err := s.Current(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				c, _ := snap.Cluster("m1")
				if got, _ := strconv.ParseInt(c.ResourceVersion, 10, 64); got < least {
					t.Errorf("version %d is from before %d, which was announced", got, least)
					return
				}
			}
		})
	}
	for version := range int64(20_000) {
		stored.Store(version)
		s.Invalidate()
		announced.Store(version)
		runtime.Gosched()
	}
	close(stop)
	group.Wait()
}

// versions lists one cluster, in the version that is stored.
type versions struct{ stored *atomic.Int64 }

func (v versions) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("nothing is read by name")
}

func (v versions) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	c := cluster("m1")
	c.ResourceVersion = strconv.FormatInt(v.stored.Load(), 10)
	list.(*clusterv1alpha1.ClusterList).Items = []clusterv1alpha1.Cluster{*c}
	return nil
}
