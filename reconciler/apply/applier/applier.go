package applier

import (
	"context"
	"fmt"
	"slices"
	"sync"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// FieldManager owns the fields that come from Git. It is Flux's, so that
// objects which Flux applied before are taken over field by field.
const FieldManager = "kustomize-controller"

// Labels that say which Kustomization an object belongs to.
var (
	nameLabel      = kustomizev1.GroupVersion.Group + "/name"
	namespaceLabel = kustomizev1.GroupVersion.Group + "/namespace"
)

// Options tune an Applier. The zero value of a field stands for its default.
type Options struct {
	// Parallel is how many requests of one set may be under way; default 8.
	Parallel int
	// MaxObjectBytes is the largest object accepted, as JSON; default
	// 1,400,000, which leaves room for managed fields below the store's limit
	// of 1.5 MiB.
	MaxObjectBytes int
}

const (
	defaultParallel       = 8
	defaultMaxObjectBytes = 1_400_000
)

// Applier applies sets of objects. It is safe for use by several goroutines.
type Applier struct {
	hub    client.Reader
	mapper meta.RESTMapper
	opts   Options

	mu     sync.Mutex
	memory map[types.NamespacedName]memory
}

// New returns an Applier that looks at the hub through the given reader, which
// must not be a cache: what is deleted must have been seen. The mapper is reset when
// a kind is served otherwise than it says.
func New(hub client.Reader, mapper meta.RESTMapper, opts Options) *Applier {
	if opts.Parallel <= 0 {
		opts.Parallel = defaultParallel
	}
	if opts.MaxObjectBytes <= 0 {
		opts.MaxObjectBytes = defaultMaxObjectBytes
	}
	return &Applier{hub: hub, mapper: mapper, opts: opts, memory: map[types.NamespacedName]memory{}}
}

// OwnerLabels returns the labels that objects of the named Kustomization carry.
func OwnerLabels(owner types.NamespacedName) map[string]string {
	return map[string]string{nameLabel: owner.Name, namespaceLabel: owner.Namespace}
}

// OwnerOf returns the Kustomization that an object's labels name.
func OwnerOf(obj metadata) (types.NamespacedName, bool) {
	labels := obj.GetLabels()
	owner := types.NamespacedName{Namespace: labels[namespaceLabel], Name: labels[nameLabel]}
	return owner, owner.Name != "" && owner.Namespace != ""
}

type metadata interface{ GetLabels() map[string]string }

// Observed are the objects on the hub that carry an owner's labels.
type Observed map[inventory.ID]*unstructured.Unstructured

// Observe lists what the hub has of the given kinds with the owner's labels. A
// kind that the hub does not serve has no objects.
func (a *Applier) Observe(ctx context.Context, owner types.NamespacedName, entries []inventory.Entry) (Observed, error) {
	ctx, leave, err := places.Compute(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	kinds, err := a.servedKinds(entries)
	if err != nil {
		return nil, err
	}
	lists := make([][]unstructured.Unstructured, len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(a.opts.Parallel)
	for i, kind := range kinds {
		group.Go(func() error {
			var err error
			if lists[i], err = a.list(ctx, owner, kind); err != nil {
				return fmt.Errorf("list %s of %s: %w", kind.Kind, owner, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	seen := Observed{}
	for i := range lists {
		for j := range lists[i] {
			obj := &lists[i][j]
			seen[inventory.IDOf(obj)] = obj
		}
	}
	return seen, nil
}

// list returns what the hub has of a kind with the owner's labels. That a kind, or a
// version of it, is served no more shows in the answer to a list alone: how it was
// served is remembered. Then it is looked up anew.
func (a *Applier) list(ctx context.Context, owner types.NamespacedName, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind)
	err := a.hub.List(ctx, &list, client.MatchingLabels(OwnerLabels(owner)))
	if !apierrors.IsNotFound(err) {
		return list.Items, err
	}
	meta.MaybeResetRESTMapper(a.mapper)
	mapping, lookup := a.mapping(kind)
	switch {
	case meta.IsNoMatchError(lookup):
		return nil, nil
	case lookup != nil:
		return nil, lookup
	case mapping.GroupVersionKind == kind:
		return nil, err // it is about to go, or to come
	}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	err = a.hub.List(ctx, &list, client.MatchingLabels(OwnerLabels(owner)))
	return list.Items, err
}

// servedKinds returns the kinds of entries in versions that the hub serves.
func (a *Applier) servedKinds(entries []inventory.Entry) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	asked := map[schema.GroupKind]bool{}
	for _, e := range entries {
		if asked[e.ID.GroupKind] {
			continue
		}
		asked[e.ID.GroupKind] = true
		mapping, err := a.mapping(e.GroupVersionKind())
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up the kind %s: %w", e.ID.GroupKind, err)
		}
		kinds = append(kinds, mapping.GroupVersionKind)
	}
	return kinds, nil
}

// mapping finds how a kind is served: in the version asked for, else in any.
func (a *Applier) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil || !meta.IsNoMatchError(err) {
		return mapping, err
	}
	return a.mapper.RESTMapping(gvk.GroupKind())
}

// each calls fn for every item, several at a time. One that fails does not keep
// the others; it returns the first error, in the order of the items, and says
// how many there were.
func each[T any](ctx context.Context, parallel int, items []T, fn func(context.Context, T) error) error {
	errs := make([]error, len(items))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, item := range items {
		group.Go(func() error {
			ctx, leave, err := places.Request(ctx)
			if err != nil {
				errs[i] = err
				return nil
			}
			defer leave()
			errs[i] = fn(ctx, item)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(failed) {
	case 0:
		return nil
	case 1:
		return failed[0]
	default:
		return fmt.Errorf("%w, and %d more faults", failed[0], len(failed)-1)
	}
}
