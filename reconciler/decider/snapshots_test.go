package decider

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	look := func() []string {
		t.Helper()
		snap, err := s.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snap.Names()
	}
	got := [][]string{look(), look()}
	if err := hub.Create(t.Context(), cluster("m2")); err != nil {
		t.Fatal(err)
	}
	s.Invalidate()
	got = append(got, look(), look())
	if diff := cmp.Diff([][]string{{"m1"}, {"m1"}, {"m1", "m2"}, {"m1", "m2"}}, got); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if lists != 2 {
		t.Errorf("clusters were listed %d times, want once per change", lists)
	}
}
