package template

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// reach finds the templates that a policy is about. It writes nothing.
type reach struct {
	hub       client.Reader
	templates *templatestore.Store
	// preempts: a policy that says so takes what another one has claimed.
	preempts bool
}

// selected calls yield for the templates that policy's selectors mean, but
// for those that another policy has claimed and that it does not take.
func (r reach) selected(ctx context.Context, policy policyv1alpha1.Policy, yield func(templatestore.Key)) error {
	spec, own := policy.PropagationSpec(), propagation.RefOf(policy)
	takes := spec.Preemption == policyv1alpha1.PreemptAlways && r.preempts
	for i := range spec.ResourceSelectors {
		s := &spec.ResourceSelectors[i]
		namespace := policy.GetNamespace()
		if namespace == "" {
			namespace = s.Namespace
		}
		err := r.templates.List(ctx, kindOf(s), namespace, func(obj *unstructured.Unstructured) {
			// The cheapest question first: this looks at all objects of the kind.
			if s.Name != "" && s.Name != obj.GetName() || selector.Match(*s, selector.ResourceOf(obj)) == selector.None {
				return
			}
			if holder, claimed := propagation.Claimed(obj); !claimed || holder == own || takes {
				yield(templatestore.KeyOf(obj))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// claimed calls yield for the templates that policy has claimed, whether
// the template says so or only its binding. It returns how many there are.
func (r reach) claimed(ctx context.Context, policy policyv1alpha1.Policy, yield func(templatestore.Key)) (int, error) {
	id, count := propagation.RefOf(policy).ID, 0
	if id == "" {
		return 0, nil
	}
	for _, gvk := range r.templates.Kinds() {
		err := r.templates.Claimed(ctx, gvk, id, func(obj *unstructured.Unstructured) {
			count++
			yield(templatestore.KeyOf(obj))
		})
		if err != nil {
			return 0, err
		}
	}
	err := bindings.Each(ctx, r.hub, func(b workv1alpha2.Binding) {
		if b.GetDeletionTimestamp() == nil {
			count++
			yield(bindings.TemplateOf(b))
		}
	}, client.MatchingFields{bindings.ByClaim: id})
	return count, err
}

// sentEdits are what policies said when their templates were sent to the template loop.
// The zero value is ready, and it is safe for use by several goroutines.
type sentEdits struct {
	mu   sync.Mutex
	says map[ctrl.Request]string
}

func (e *sentEdits) get(req ctrl.Request) (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	says, known := e.says[req]
	return says, known
}

func (e *sentEdits) put(req ctrl.Request, says string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.says == nil {
		e.says = map[ctrl.Request]string{}
	}
	e.says[req] = says
}

func (e *sentEdits) forget(req ctrl.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.says, req)
}
