// Package reach finds the templates that a policy concerns, and records which edits of it have been sent to them.
//
// In go policies; out come keys of templates, which stores and indexes of bindings hold. It writes nothing.
package reach

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// Finder finds the templates that a policy concerns.
type Finder struct {
	// Hub reads from a cache with the indexes of bindings.
	Hub       client.Reader
	Templates *templatestore.Store
	// Preempts says that policies may preempt: claim templates that another one has claimed.
	Preempts bool
}

// Selected calls yield for the templates that the policy's selectors match, except
// those that another policy has claimed and that it does not preempt.
func (f Finder) Selected(ctx context.Context, policy policyv1alpha1.Policy, yield func(templatestore.Key)) error {
	spec, own := policy.PropagationSpec(), propagation.RefOf(policy)
	takes := spec.Preemption == policyv1alpha1.PreemptAlways && f.Preempts
	for i := range spec.ResourceSelectors {
		s := &spec.ResourceSelectors[i]
		namespace := policy.GetNamespace()
		if namespace == "" {
			namespace = s.Namespace
		}
		err := f.Templates.List(ctx, schema.FromAPIVersionAndKind(s.APIVersion, s.Kind), namespace, func(obj *unstructured.Unstructured) {
			// The cheapest check first: this goes through all objects of the kind.
			if s.Name != "" && s.Name != obj.GetName() || selector.Match(*s, selector.ResourceOf(obj)) == selector.None {
				return
			}
			if owner, claimed := propagation.Claimed(obj); !claimed || owner == own || takes {
				yield(templatestore.KeyOf(obj))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Claimed calls yield for the templates that policy has claimed, by the metadata of
// the template or of its binding. It returns how many calls it made.
func (f Finder) Claimed(ctx context.Context, policy policyv1alpha1.Policy, yield func(templatestore.Key)) (int, error) {
	id, count := propagation.RefOf(policy).ID, 0
	if id == "" {
		return 0, nil
	}
	for _, gvk := range f.Templates.Kinds() {
		err := f.Templates.Claimed(ctx, gvk, id, func(obj *unstructured.Unstructured) {
			count++
			yield(templatestore.KeyOf(obj))
		})
		if err != nil {
			return 0, err
		}
	}
	err := bindings.Each(ctx, f.Hub, func(b workv1alpha2.Binding) {
		if b.GetDeletionTimestamp() == nil {
			count++
			yield(bindings.TemplateOf(b))
		}
	}, client.MatchingFields{bindings.ByClaim: id})
	return count, err
}

// Sent records what each policy announced when its templates were sent to the loop that carries them.
// The zero value is ready, and it is safe for use by several goroutines.
type Sent struct {
	mu        sync.Mutex
	announced map[ctrl.Request]string
}

// Get returns what a policy announced last; false if nothing was sent.
func (e *Sent) Get(req ctrl.Request) (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	announced, known := e.announced[req]
	return announced, known
}

// Put records what a policy announces.
func (e *Sent) Put(req ctrl.Request, announced string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.announced == nil {
		e.announced = map[ctrl.Request]string{}
	}
	e.announced[req] = announced
}

// Forget drops what is recorded of a policy.
func (e *Sent) Forget(req ctrl.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.announced, req)
}
