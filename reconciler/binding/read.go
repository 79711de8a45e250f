package binding

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/binding/inuse"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

// behind is how long to wait for the store of templates if it lags behind the cache of bindings.
const behind = 50 * time.Millisecond

// reader reads the objects of a pass.
type reader struct {
	hub       client.Reader
	live      client.Reader
	templates func(ctx context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error)
	works     func(ctx context.Context, b workv1alpha2.Binding) ([]*workv1alpha1.Work, error)
	gone      func(key client.ObjectKey)
	orphans   func(ctx context.Context, gone client.ObjectKey) ([]*workv1alpha1.Work, error)
	unchanged func(ctx context.Context, template *unstructured.Unstructured, b workv1alpha2.Binding) bool
}

// readBinding reads the binding and its Works. If the cache has no binding, Works with its name count as left
// behind only once a read from the control plane itself shows that it is gone: the watch
// of Works may be ahead of that of bindings.
func (p reader) readBinding(ctx context.Context, s *state) (loop.Next, error) {
	b, found, err := bindings.Get(ctx, p.hub, s.key)
	if err != nil {
		return loop.Next{}, err
	}
	if !found {
		p.gone(s.key)
		if s.works, err = p.orphans(ctx, s.key); err != nil || len(s.works) == 0 {
			return loop.Next{Done: true}, err
		}
		_, there, err := bindings.Get(ctx, p.live, s.key)
		return loop.Next{Done: there}, err // if it exists, the watch will report it
	}
	s.binding = b
	s.serving = inuse.Of(ctx, p.hub, b)
	s.works, err = p.works(ctx, b)
	return loop.Next{}, err
}

// readTemplate reads the template. It sets held if that is not the version that the
// binding is for, and the binding would be decided differently for it: what runs
// stays as it is, except for its clusters, until the two agree again.
func (p reader) readTemplate(ctx context.Context, s *state) (loop.Next, error) {
	ref := &s.binding.BindingSpec().Resource
	obj, presence, err := p.templates(ctx, bindings.TemplateOf(s.binding))
	switch {
	case err != nil:
		return loop.Next{}, err
	case presence != templatestore.Present || (ref.UID != "" && ref.UID != obj.GetUID()):
		// Not known yet, gone or created again: an event follows in each case.
		return loop.Next{Done: true}, nil
	case writecache.Older(obj.GetResourceVersion(), ref.ResourceVersion):
		return loop.Next{}, loop.Waiting(workv1alpha2.EventReasonSyncWorkFailed, behind, fmt.Errorf(
			"the template is cached at version %s, the binding is for %s", obj.GetResourceVersion(), ref.ResourceVersion))
	}
	same, err := described(s.binding, obj)
	if err != nil {
		return loop.Next{}, err
	}
	// The question is about a copy: whoever answers may claim it.
	s.template, s.held = obj, !same && !p.unchanged(ctx, obj.DeepCopy(), s.binding)
	return loop.Next{}, nil
}

// described reports whether b is for the template as it is. A binding that
// the template loop did not write has no digest, and counts as being so.
func described(b workv1alpha2.Binding, template *unstructured.Unstructured) (bool, error) {
	want := b.GetAnnotations()[propagation.DigestAnnotation]
	if want == "" {
		return true, nil
	}
	digest, err := propagation.Digest(template)
	if err != nil {
		return false, fmt.Errorf("digest of the template: %w", err)
	}
	return digest == want, nil
}
