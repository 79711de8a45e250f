package bindings

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// New returns an empty binding of the scope that namespace stands for: the
// empty namespace means a cluster-scoped one.
func New(namespace string) workv1alpha2.Binding {
	if namespace == "" {
		return &workv1alpha2.ClusterResourceBinding{}
	}
	return &workv1alpha2.ResourceBinding{}
}

// KeyOf returns the key of the binding of a template.
func KeyOf(template templatestore.Key) client.ObjectKey {
	return client.ObjectKey{Namespace: template.Namespace, Name: workv1alpha2.BindingName(template.Kind, template.Name)}
}

// TemplateOf returns the key of the template that b is for.
func TemplateOf(b workv1alpha2.Binding) templatestore.Key {
	ref := &b.BindingSpec().Resource
	return templatestore.Key{
		GroupVersionKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind),
		Namespace:        ref.Namespace,
		Name:             ref.Name,
	}
}

// Finalizer returns the finalizer that holds b until its Works are gone.
func Finalizer(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingControllerFinalizer
	}
	return workv1alpha2.BindingControllerFinalizer
}

// IDLabel returns the label that holds b's permanent id.
func IDLabel(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ResourceBindingPermanentIDLabel
}

// Get returns the binding under key, and false if there is none. The binding is
// shared with the cache: copy it before changing it, or handing it to a client
// that writes into it.
func Get(ctx context.Context, hub client.Reader, key client.ObjectKey) (workv1alpha2.Binding, bool, error) {
	b, kind := New(key.Namespace), workv1alpha2.ResourceKindResourceBinding
	if key.Namespace == "" {
		kind = workv1alpha2.ResourceKindClusterResourceBinding
	}
	err := hub.Get(ctx, key, b, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read binding %s: %w", key, err)
	}
	// The cache keeps no kinds; this one is not shared.
	b.GetObjectKind().SetGroupVersionKind(workv1alpha2.GroupVersion.WithKind(kind))
	return b, true, nil
}

// Carrying returns the binding that carries an object of the hub, and false if none does. Bindings are named by
// kind and name, so one of another group may stand in its place.
func Carrying(ctx context.Context, hub client.Reader, kind schema.GroupKind, key client.ObjectKey) (workv1alpha2.Binding, bool, error) {
	b, found, err := Get(ctx, hub, client.ObjectKey{Namespace: key.Namespace, Name: workv1alpha2.BindingName(kind.Kind, key.Name)})
	if err != nil || !found {
		return nil, false, err
	}
	ref := TemplateOf(b)
	return b, ref.GroupKind() == kind && ref.Name == key.Name && ref.Namespace == key.Namespace, nil
}

// Each calls yield for every binding of both scopes that the options select; a
// namespace among them excludes the cluster-scoped ones. The bindings are
// shared: they must not be changed.
func Each(ctx context.Context, hub client.Reader, yield func(workv1alpha2.Binding), opts ...client.ListOption) error {
	opts = append(opts, client.UnsafeDisableDeepCopy)
	var namespaced workv1alpha2.ResourceBindingList
	if err := hub.List(ctx, &namespaced, opts...); err != nil {
		return fmt.Errorf("list bindings: %w", err)
	}
	for i := range namespaced.Items {
		yield(&namespaced.Items[i])
	}
	if (&client.ListOptions{}).ApplyOptions(opts).Namespace != "" {
		return nil
	}
	var cluster workv1alpha2.ClusterResourceBindingList
	if err := hub.List(ctx, &cluster, opts...); err != nil {
		return fmt.Errorf("list cluster bindings: %w", err)
	}
	for i := range cluster.Items {
		yield(&cluster.Items[i])
	}
	return nil
}

// Indexes of bindings in the hub's cache.
const (
	// ByClaim finds bindings by the permanent id of the policy that claims them.
	ByClaim = "claim"
	// ByTemplateKind finds bindings by the kind of their template, as
	// schema.GroupVersionKind prints it.
	ByTemplateKind = "templateKind"
	// ByTemplate finds bindings by their template, as TemplateValue prints it.
	ByTemplate = "template"
	// ByCluster finds bindings by the clusters whose Works are theirs.
	ByCluster = "cluster"
)

// Indexes of Works in the hub's cache.
const (
	// WorksByID finds Works by the permanent id of their binding.
	WorksByID = "bindingID"
	// WorksByOwner finds them by the key of their binding, which may be gone.
	WorksByOwner = "binding"
)

// TemplateValue returns the value of ByTemplate for a template.
func TemplateValue(key templatestore.Key) string {
	return key.GroupVersionKind.String() + " " + key.Namespace + "/" + key.Name
}

// Register adds the indexes of bindings and of Works to the cache of mgr. The
// loops that work on bindings need them.
func Register(ctx context.Context, mgr ctrl.Manager) error {
	return index(ctx, mgr.GetFieldIndexer())
}

// index adds the indexes of bindings and of Works to indexer.
func index(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(workv1alpha2.Binding) []string{
		ByClaim: func(b workv1alpha2.Binding) []string {
			if ref, ok := propagation.Claimed(b); ok {
				return []string{ref.ID}
			}
			return nil
		},
		ByTemplateKind: func(b workv1alpha2.Binding) []string {
			return []string{TemplateOf(b).GroupVersionKind.String()}
		},
		ByTemplate: func(b workv1alpha2.Binding) []string { return []string{TemplateValue(TemplateOf(b))} },
		ByCluster:  clusters,
	}
	for field, values := range indexes {
		extract := func(obj client.Object) []string { return values(obj.(workv1alpha2.Binding)) }
		for _, kind := range []client.Object{&workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}} {
			if err := indexer.IndexField(ctx, kind, field, extract); err != nil {
				return fmt.Errorf("index bindings by %s: %w", field, err)
			}
		}
	}
	err := indexer.IndexField(ctx, &workv1alpha1.Work{}, WorksByID, func(obj client.Object) []string {
		if id := IDOf(obj.(*workv1alpha1.Work)); id != "" {
			return []string{id}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index works by their binding: %w", err)
	}
	err = indexer.IndexField(ctx, &workv1alpha1.Work{}, WorksByOwner, func(obj client.Object) []string {
		if key, ok := OwnerOf(obj.(*workv1alpha1.Work)); ok {
			return []string{key.String()}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index works by the key of their binding: %w", err)
	}
	return nil
}

// IDOf returns the permanent id of the binding that w belongs to; empty for
// Works that no binding made.
func IDOf(w *workv1alpha1.Work) string {
	if id := w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]; id != "" {
		return id
	}
	return w.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
}

// OwnerOf returns the key of the binding that w belongs to, and false for Works
// that no binding made.
func OwnerOf(w *workv1alpha1.Work) (client.ObjectKey, bool) {
	a := w.Annotations
	if name := a[workv1alpha2.ClusterResourceBindingAnnotationKey]; name != "" {
		return client.ObjectKey{Name: name}, IDOf(w) != ""
	}
	key := client.ObjectKey{Namespace: a[workv1alpha2.ResourceBindingNamespaceAnnotationKey], Name: a[workv1alpha2.ResourceBindingNameAnnotationKey]}
	return key, key.Namespace != "" && key.Name != "" && IDOf(w) != ""
}

// WorkIn returns the Work of b in a cluster, and false if there is none. It may stand
// under its former name: that one is it for as long as nothing is reported of the other. The
// Work is shared with the cache: it must not be changed.
func WorkIn(ctx context.Context, hub client.Reader, b workv1alpha2.Binding, cluster string) (*workv1alpha1.Work, bool, error) {
	ref := &b.BindingSpec().Resource
	find := func(name string) (*workv1alpha1.Work, error) {
		work := &workv1alpha1.Work{}
		err := hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: name}, work, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && IDOf(work) != b.GetLabels()[IDLabel(b)] {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the work of %s for cluster %s: %w", ref.Name, cluster, err)
		}
		return work, nil
	}
	work, err := find(workv1alpha2.WorkName(ref.Kind, ref.Name, ref.Namespace))
	if err != nil || work != nil && len(work.Status.Conditions) > 0 {
		return work, work != nil, err
	}
	former, err := find(workv1alpha2.FormerWorkName(ref.Kind, ref.Name, ref.Namespace))
	if former != nil {
		work = former
	}
	return work, work != nil, err
}

// ClustersWithWork returns the clusters that have a Work of b, those being deleted
// included, sorted.
func ClustersWithWork(ctx context.Context, hub client.Reader, b workv1alpha2.Binding) ([]string, error) {
	id := b.GetLabels()[IDLabel(b)]
	if id == "" {
		return nil, nil
	}
	var list workv1alpha1.WorkList
	if err := hub.List(ctx, &list, client.MatchingFields{WorksByID: id}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list works: %w", err)
	}
	var out []string
	for i := range list.Items {
		if cluster, ok := workv1alpha2.ClusterOfExecutionNamespace(list.Items[i].Namespace); ok {
			out = append(out, cluster)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// clusters returns the clusters that b runs on, is needed on or is leaving.
func clusters(b workv1alpha2.Binding) []string {
	spec := b.BindingSpec()
	names := map[string]bool{}
	for _, t := range spec.Clusters {
		names[t.Name] = true
	}
	for _, by := range spec.RequiredBy {
		for _, t := range by.Clusters {
			names[t.Name] = true
		}
	}
	for _, task := range spec.GracefulEvictionTasks {
		names[task.FromCluster] = true
	}
	return slices.Collect(maps.Keys(names))
}
