package applier

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// FieldManager owns the fields that come from Git. It is the name that Flux uses, so that
// objects which Flux applied before are taken over field by field.
const FieldManager = "kustomize-controller"

// Options tune an Applier. The zero value of a field stands for its default.
type Options struct {
	// Parallel is how many requests of one set may be under way; default 8.
	Parallel int
	// MaxObjectBytes is the largest object accepted, as JSON; default
	// 1,400,000, which leaves room for managed fields below the store's limit
	// of 1.5 MiB.
	MaxObjectBytes int
	// Remote says that the server is that of a cluster outside of the fleet, and not the control plane.
	Remote bool
}

// server is what the server is called in messages.
func (o Options) server() string {
	if o.Remote {
		return "the cluster"
	}
	return "the control plane"
}

const (
	defaultParallel       = 8
	defaultMaxObjectBytes = 1_400_000
)

// Applier applies sets of objects. It is safe for use by several goroutines.
type Applier struct {
	reader reader
	opts   Options
	memory memory
}

// New returns an Applier that reads the hub through the given reader, which must not be a cache: a
// deletion is bound to the UID and the version that were read. The mapper is reset when the hub turns out
// to serve a kind otherwise than the mapper has it.
func New(hub client.Reader, mapper meta.RESTMapper, opts Options) *Applier {
	if opts.Parallel <= 0 {
		opts.Parallel = defaultParallel
	}
	if opts.MaxObjectBytes <= 0 {
		opts.MaxObjectBytes = defaultMaxObjectBytes
	}
	return &Applier{reader: reader{hub: hub, mapper: mapper}, opts: opts}
}

// Observe lists what the hub has of the given kinds with the owner's labels. A
// kind that the hub does not serve has no objects.
func (a *Applier) Observe(ctx context.Context, owner types.NamespacedName, entries []inventory.Entry) (Observed, error) {
	return a.reader.observe(ctx, owner, entries, a.opts.Parallel)
}

// Forget drops what is remembered of the objects of an owner that is gone.
func (a *Applier) Forget(owner types.NamespacedName) { a.memory.forget(owner) }

// each calls fn for every item, several at a time. An item that fails does not stop the
// others. The error is the first one, in the order of the items, with the number of the others.
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
	_ = group.Wait() // the functions return nil, and keep their errors in errs
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
