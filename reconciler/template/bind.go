package template

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// binder decides the content of the binding.
type binder struct {
	replicas func(obj *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, bool, error)
	// components is nil if templates with several components are not supported.
	components func(obj *unstructured.Unstructured) ([]workv1alpha2.Component, bool, error)
	// priority returns the value of a PriorityClass, false if it does not exist;
	// it is nil if priorities are off.
	priority func(ctx context.Context, class string) (int32, bool, error)
	decide   func(ctx context.Context, b workv1alpha2.Binding) (placement.Decision, bool, error)
	newID    func() string
	// ran returns the clusters that are not ready and have yet to remove an earlier template of the same name (see
	// package predecessor); it may be nil.
	ran func(ctx context.Context, key templatestore.Key, p *policyv1alpha1.Placement) ([]workv1alpha2.TargetCluster, error)
}

// run sets the desired binding; nil if there is nothing to bind. It ends the
// pass while the template's replicas are not known yet.
func (p binder) run(ctx context.Context, s *state) (loop.Next, error) {
	if s.policy == nil {
		return p.release(s)
	}
	if s.activation.Waits {
		return loop.Next{}, follow(s)
	}
	err := p.describe(ctx, s)
	if after, awaits := kinds.Awaits(err); awaits {
		s.desired, s.awaits = nil, true
		return loop.Next{Done: true, After: max(after, time.Millisecond)}, nil
	}
	if err != nil {
		return loop.Next{}, err
	}
	decision, changed, err := p.decide(ctx, s.desired)
	if s.binding == nil {
		decision.Evictions = nil // a new binding runs nowhere yet
	}
	if changed {
		decision.Put(s.desired)
		s.decision = &decision
	}
	return loop.Next{}, err
}

// follow sets the desired binding of a template under a Lazy policy that waits for its next change: only the claim of
// the policy, and otherwise the binding as it is.
func follow(s *state) error {
	if s.binding == nil {
		return nil
	}
	digest, err := propagation.Digest(s.template)
	if err != nil {
		return fmt.Errorf("digest of the template: %w", err)
	}
	s.desired = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	propagation.Follow(s.desired, s.policy, s.digest, digest)
	return nil
}

// release sets the desired binding of a template that no policy carries
// any more: it runs on, as the template is at that moment. Later edits
// of the template stay on the hub until a policy carries it again.
func (p binder) release(s *state) (loop.Next, error) {
	if s.binding == nil || collides(s) != nil {
		return loop.Next{}, nil
	}
	digest, err := propagation.Digest(s.template)
	if err != nil {
		return loop.Next{}, fmt.Errorf("digest of the template: %w", err)
	}
	s.desired = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	propagation.Unclaim(s.desired)
	s.comesBack()
	if seen := s.binding.GetAnnotations()[propagation.DigestAnnotation]; seen != digest {
		s.desired.BindingSpec().Resource.ResourceVersion = s.template.GetResourceVersion()
		propagation.Note(s.desired, digest, "")
	}
	return loop.Next{}, nil
}

// comesBack sends a template that is wanted again to all its clusters, if it was pruned from some.
func (s *state) comesBack() {
	if !s.left {
		plan.SetPrunedFrom(s.desired, nil)
	}
}

// describe sets all but the placement.
func (p binder) describe(ctx context.Context, s *state) error {
	digest, err := propagation.Digest(s.template)
	if err != nil {
		return fmt.Errorf("digest of the template: %w", err)
	}
	t := propagation.Template{Object: s.template, Digest: digest}
	if err := p.size(&t); err != nil {
		return err
	}
	if t.Priority, err = p.rank(ctx, s.policy); err != nil {
		return err
	}
	var current *workv1alpha2.ResourceBindingSpec
	if s.binding == nil {
		s.desired = bindings.New(s.key.Namespace)
	} else {
		s.desired = s.binding.DeepCopyObject().(workv1alpha2.Binding)
		t.Seen = s.binding.GetAnnotations()[propagation.DigestAnnotation]
		current = s.desired.BindingSpec()
	}
	*s.desired.BindingSpec() = propagation.BindingSpec(t, s.policy, current)
	if s.binding == nil && p.ran != nil {
		if s.desired.BindingSpec().Clusters, err = p.ran(ctx, s.key, &s.policy.PropagationSpec().Placement); err != nil {
			return err
		}
	}
	p.label(s, digest)
	return nil
}

// size sets the components of the template if it has several, and else its
// replicas.
func (p binder) size(t *propagation.Template) error {
	if p.components != nil {
		parts, known, err := p.components(t.Object)
		if err != nil {
			return unsized(workv1alpha2.EventReasonGetComponentsFailed, fmt.Errorf("read its components: %w", err))
		}
		if known && len(parts) > 0 {
			t.Components = parts
			return nil
		}
	}
	var err error
	if t.Replicas, t.Requirements, _, err = p.replicas(t.Object); err != nil {
		return unsized(workv1alpha2.EventReasonGetReplicasFailed, fmt.Errorf("read its replicas: %w", err))
	}
	return nil
}

// unsized returns the error of a template whose size is not known. It is tried again, as a webhook may
// answer later; a change of the template, or of the rules for its kind, starts
// a pass at once.
func unsized(reason string, err error) error {
	return loop.Waiting(reason, interpreters.RetryAfter(err), err)
}

// rank returns the value of the PriorityClass that policy names; nil if it names
// none.
func (p binder) rank(ctx context.Context, policy policyv1alpha1.Policy) (*int32, error) {
	class := policy.PropagationSpec().SchedulePriority
	if class == nil || p.priority == nil {
		return nil, nil
	}
	value, found, err := p.priority(ctx, class.PriorityClassName)
	switch {
	case err != nil:
		return nil, err
	case !found: // its creation enqueues the policy
		return nil, loop.Stalled(policyv1alpha1.EventReasonApplyPolicyFailed, propagation.NoPriorityClass(policy))
	default:
		return &value, nil
	}
}

// label sets the metadata.
func (p binder) label(s *state, digest string) {
	key := bindings.KeyOf(s.key)
	b := s.desired
	b.SetNamespace(key.Namespace)
	b.SetName(key.Name)
	propagation.ClaimOf(s.policy).Set(b)
	propagation.RecordSecrets(b, s.policy)
	if label := bindings.IDLabel(b); b.GetLabels()[label] == "" {
		labels := maps.Clone(b.GetLabels())
		labels[label] = p.newID()
		b.SetLabels(labels)
	}
	propagation.Note(b, digest, s.activation.Edition)
	s.comesBack()
	b.SetOwnerReferences(owners(b.GetOwnerReferences(), s.template))
	controllerutil.AddFinalizer(b, bindings.Finalizer(b))
}

// owners returns refs with the template as the controller. A template that was
// deleted and created again takes over the binding of its predecessor, and with
// it what runs.
func owners(refs []metav1.OwnerReference, template *unstructured.Unstructured) []metav1.OwnerReference {
	out := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.UID == template.GetUID() || (ref.Controller != nil && *ref.Controller)
	})
	return append(out, *metav1.NewControllerRef(template, template.GroupVersionKind()))
}
