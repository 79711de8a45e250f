package dependency

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/interpreters"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// use is what the phases about one user pass on.
type use struct {
	key client.ObjectKey
	// binding of the template.
	binding workv1alpha2.Binding
	// clusters have a Work of it.
	clusters []string
	// deps are what it needs; known is false where that cannot be found out at all.
	deps  []kinds.Dependency
	known bool
	// record: deps are to be recorded on the binding.
	record bool
	// refused is what it refers to and may not have.
	refused []kinds.Dependency
	// asked: the interpreter has answered, with fault or without.
	asked bool
	fault error
	// desired is what the binding should be; nil leaves it as it is.
	desired workv1alpha2.Binding
	// over: it is being deleted, and its finalizer can be removed.
	over bool
}

func (s *use) ref() dependency.Ref {
	return dependency.Ref{Namespace: s.key.Namespace, Name: s.key.Name}
}

// readUser reads the binding. One that is gone needs nothing.
func (r *Reconciler) readUser(ctx context.Context, s *use) (loop.Next, error) {
	b, found, err := r.reader.binding(ctx, s.key)
	if err != nil {
		return loop.Next{}, err
	}
	if !found {
		return loop.Next{Done: true}, r.forget(ctx, s.ref())
	}
	s.binding = b
	s.clusters, err = bindings.ClustersWithWork(ctx, r.hub, b)
	return loop.Next{}, err
}

// leave ends the pass for a binding whose template propagates no dependencies, or not
// any more. What was recorded is removed once no binding names it.
func (r *Reconciler) leave(ctx context.Context, s *use) (loop.Next, error) {
	if r.opts.uses(s.binding) {
		return loop.Next{}, nil
	}
	if err := r.forget(ctx, s.ref()); err != nil {
		return loop.Next{}, err
	}
	left, err := r.reader.naming(ctx, s.ref())
	if err != nil || len(left) > 0 || r.written.Ended(s.binding) {
		return loop.Next{Done: true}, err // they bring it back
	}
	if s.over = s.binding.GetDeletionTimestamp() != nil; s.over {
		return loop.Next{Done: true}, nil
	}
	s.desired = s.binding.DeepCopyObject().(workv1alpha2.Binding)
	controllerutil.RemoveFinalizer(s.desired, workv1alpha2.BindingDependenciesDistributorFinalizer)
	setAnnotation(s.desired, workv1alpha2.BindingDependenciesAnnotationKey, "")
	setAnnotation(s.desired, dependency.FaultAnnotation, "")
	return loop.Next{Done: true}, nil
}

// uses reports whether b's template propagates what it needs.
func (o Options) uses(b workv1alpha2.Binding) bool { return !o.Off && dependency.Uses(b) }

// interpret finds out what the template needs. While that is not known, it
// needs what it needed before.
func (r *Reconciler) interpret(ctx context.Context, s *use) (loop.Next, error) {
	last, had, err := r.last(ctx, s.ref())
	if err != nil {
		return loop.Next{}, err
	}
	s.deps, s.known = last, had
	r.index.ask(s.ref())
	template, presence, err := r.templates.Get(ctx, bindings.TemplateOf(s.binding))
	if err != nil {
		return loop.Next{}, err
	}
	if uid := s.binding.BindingSpec().Resource.UID; presence != templatestore.Present || uid != "" && uid != template.GetUID() {
		return loop.Next{}, nil // its event brings it back
	}
	deps, _, err := r.interpreter.Dependencies(template)
	if after, awaits := kinds.Awaits(err); awaits {
		return loop.Next{After: after}, nil
	}
	if s.asked = true; err != nil {
		err = fmt.Errorf("find out what it refers to: %w", err)
		s.fault = loop.Retry(workv1alpha2.EventReasonGetDependenciesFailed, err)
		if after := interpreters.Costs(err); after > 0 {
			s.fault = loop.Waiting(workv1alpha2.EventReasonGetDependenciesFailed, max(after, longestPause), err)
		}
		return loop.Next{}, nil
	}
	deps, err = dependency.Check(deps, last, selector.ResourceOf(template), r.opts.Skip)
	if err != nil {
		s.fault = loop.Stalled(workv1alpha2.EventReasonGetDependenciesFailed, fmt.Errorf("what it refers to makes no sense: %w", err))
	}
	scope, next, err := crossNamespace{r}.scope(ctx, s.binding, selector.ResourceOf(template), last, deps)
	if err != nil || next.After > 0 {
		s.asked = false
		return next, err
	}
	last, _ = scope.Divide(last)
	if deps, s.refused = scope.Divide(deps); s.fault == nil {
		s.fault, err = crossNamespace{r}.refusal(ctx, scope.Template, s.refused)
	}
	if _, many := dependency.Note(deps); many != nil {
		s.fault, s.deps = loop.Stalled(workv1alpha2.EventReasonGetDependenciesFailed, many), last
		return loop.Next{}, err
	}
	s.known = true
	return loop.Next{}, errors.Join(err, s.choose(template, last, deps, had))
}

// last returns what the template needed when that was last known, and whether that
// is known. After a restart it is what went along with it. What the binding itself
// says is not asked: others may write that.
func (r *Reconciler) last(ctx context.Context, ref dependency.Ref) ([]kinds.Dependency, bool, error) {
	if e := r.index.get(ref); e != nil && e.known {
		return e.deps, true, nil
	}
	along, err := r.reader.naming(ctx, ref)
	deps := make([]kinds.Dependency, 0, len(along))
	for _, b := range along {
		of := b.BindingSpec().Resource
		deps = append(deps, kinds.Dependency{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
	}
	return dependency.Union(deps, nil), len(deps) > 0, err
}

// choose sets the needs of the template in the versions that clusters hold or are
// to hold. What a new version needs is propagated at once; what only the previous one
// needed stays until the binding is for the new one, and no cluster is kept from
// it.
func (s *use) choose(template *unstructured.Unstructured, last, deps []kinds.Dependency, had bool) error {
	stands := s.binding.GetAnnotations()[propagation.DigestAnnotation]
	same := stands == ""
	if !same {
		digest, err := propagation.Digest(template)
		if err != nil {
			return fmt.Errorf("digest of the template: %w", err)
		}
		same = digest == stands
	}
	_, claimed := propagation.Claimed(s.binding)
	switch {
	case same && (suspended(s.binding) || lingers(s.binding, s.clusters)):
		s.deps, s.record = dependency.Union(last, deps), true
		if _, err := dependency.Note(s.deps); err != nil {
			s.deps = deps
		}
	case same:
		s.deps, s.record = deps, true
	case claimed || !had:
		s.deps = dependency.Union(last, deps)
	default:
		s.deps = last // its policy released it: clusters hold the version of that time
	}
	return nil
}

func suspended(b workv1alpha2.Binding) bool {
	s := b.BindingSpec().Suspension
	return s != nil && (ptr.Deref(s.Dispatching, false) || s.DispatchingOnClusters != nil && len(s.DispatchingOnClusters.ClusterNames) > 0)
}

// lingers reports whether a cluster has a Work of b that b has no place for any more:
// of whatever version that is.
func lingers(b workv1alpha2.Binding, clusters []string) bool {
	spec := b.BindingSpec()
	return slices.ContainsFunc(clusters, func(name string) bool {
		return !slices.ContainsFunc(spec.Clusters, func(t workv1alpha2.TargetCluster) bool { return t.Name == name })
	})
}

// enter writes what was found into the reverse index, and looks at the bindings that it
// is about.
func (r *Reconciler) enter(ctx context.Context, s *use) (loop.Next, error) {
	now := &entry{User: dependency.UserOf(s.binding, s.clusters...), known: s.known, deps: s.deps, refused: s.refused}
	now.Needs = dependency.Needs(s.deps)
	before := r.index.put(now)
	if now.same(before) {
		return loop.Next{}, nil
	}
	r.templates.Want(watchOwner(now.Ref), now.kinds()...)
	return loop.Next{}, r.alert(ctx, now.Ref, before, now)
}

// watchOwner is the owner under which the kinds that a user needs are watched.
type watchOwner dependency.Ref

// forget removes a user from the reverse index.
func (r *Reconciler) forget(ctx context.Context, ref dependency.Ref) error {
	before := r.index.drop(ref)
	if before != nil {
		r.templates.Want(watchOwner(ref))
	}
	return r.alert(ctx, ref, before)
}

// alert enqueues the bindings of all that a user needs or needed, and those
// that name it.
func (r *Reconciler) alert(ctx context.Context, ref dependency.Ref, entries ...*entry) error {
	for _, e := range entries {
		if e == nil {
			continue
		}
		for i := range e.Needs {
			n := &e.Needs[i]
			if n.Name != "" {
				r.objects.Add(templatestore.Key{GroupVersionKind: n.GroupVersionKind, Namespace: n.Namespace, Name: n.Name}, false)
				continue
			}
			err := r.templates.List(ctx, n.GroupVersionKind, n.Namespace, func(obj *unstructured.Unstructured) {
				if n.Means(selector.ResourceOf(obj)) {
					r.objects.Add(templatestore.KeyOf(obj), false)
				}
			})
			if err != nil {
				return err
			}
		}
	}
	named, err := r.reader.naming(ctx, ref)
	for _, b := range named {
		r.objects.Add(bindings.TemplateOf(b), false)
	}
	return err
}

// note records on the binding what its template needs, and why that is not known.
func note(_ context.Context, s *use) (loop.Next, error) {
	desired := s.binding.DeepCopyObject().(workv1alpha2.Binding)
	if s.asked {
		setAnnotation(desired, dependency.FaultAnnotation, faultText(s.fault))
	}
	if s.record {
		text := ""
		if len(s.deps) > 0 {
			var err error
			if text, err = dependency.Note(s.deps); err != nil {
				return loop.Next{}, err
			}
			controllerutil.AddFinalizer(desired, workv1alpha2.BindingDependenciesDistributorFinalizer)
		}
		setAnnotation(desired, workv1alpha2.BindingDependenciesAnnotationKey, text)
	}
	s.desired = desired
	return loop.Next{}, nil
}

// setAnnotation sets an annotation; an empty text removes it.
func setAnnotation(b workv1alpha2.Binding, key, text string) {
	if b.GetAnnotations()[key] == text {
		return
	}
	annotations := maps.Clone(b.GetAnnotations())
	if delete(annotations, key); text != "" {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = text
	}
	b.SetAnnotations(annotations)
}

// faultText returns the text that is recorded of a fault.
func faultText(err error) string {
	if err == nil {
		return ""
	}
	return excerpt.Bytes(err.Error(), propagation.MaxFault)
}
