package template

import (
	"context"
	"errors"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// TestSweep: the binding of a template that is absent from the cache is deleted only
// if the control plane does not have the template either.
func TestSweep(t *testing.T) {
	cases := map[string]struct {
		binding workv1alpha2.Binding
		gone    bool
		err     error
		deleted bool
	}{
		"gone":                         {binding: bindingOf("apps/v1"), gone: true, deleted: true},
		"not seen here yet":            {binding: bindingOf("apps/v1")},
		"nobody knows":                 {binding: bindingOf("apps/v1"), err: errors.New("no answer")},
		"gone, in another version":     {binding: bindingOf("apps/v1beta1"), gone: true},
		"gone, and it was never bound": {gone: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme.New())
			if tc.binding != nil {
				builder.WithObjects(tc.binding)
			}
			hub := builder.Build()
			p := writer{
				hub:     hub,
				written: writecache.New[workv1alpha2.Binding](clocktesting.NewFakePassiveClock(noon)),
				gone:    func(context.Context, templatestore.Key) (bool, error) { return tc.gone, tc.err },
			}
			s := state{key: key(), binding: tc.binding}
			next, err := p.sweep(t.Context(), &s)
			if !next.Done || !errors.Is(err, tc.err) {
				t.Errorf("done %v, err %v; want the end of the pass, err %v", next.Done, err, tc.err)
			}
			if tc.binding == nil {
				return
			}
			err = hub.Get(t.Context(), client.ObjectKeyFromObject(tc.binding), &workv1alpha2.ResourceBinding{})
			if got := err != nil; got != tc.deleted {
				t.Errorf("deleted = %v, want %v", got, tc.deleted)
			}
		})
	}
}
