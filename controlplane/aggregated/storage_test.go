package aggregated

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// A write that panics is reported as one with an unknown outcome. If its end were not
// reported, its reservation would be kept for ever.
func TestTheWitnessSeesWritesThatPanic(t *testing.T) {
	for name, write := range map[string]func(context.Context, *mainStore){
		"a creation": func(ctx context.Context, s *mainStore) {
			_, _ = s.Create(ctx, &workv1alpha2.ResourceBinding{}, nil, nil)
		},
		"a change": func(ctx context.Context, s *mainStore) { _, _, _ = s.Update(ctx, "a", nil, nil, nil, false, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			var ends []error
			s := &mainStore{Store: &genericregistry.Store{}, witness: func(ctx context.Context) (context.Context, func(runtime.Object, error)) {
				return ctx, func(_ runtime.Object, err error) { ends = append(ends, err) }
			}}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("a store that is not there did not panic")
					}
				}()
				write(t.Context(), s)
			}()
			if len(ends) != 1 || !errors.Is(ends[0], errUnfinished) {
				t.Errorf("told %v, want once that it did not end", ends)
			}
		})
	}
}
