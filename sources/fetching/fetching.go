package fetching

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// Recorder records Events.
type Recorder interface {
	Event(obj runtime.Object, eventType, reason, message string)
}

const (
	// MinInterval keeps a zero interval from becoming a hot loop.
	MinInterval = time.Second
	// FirstRetry and LastRetry are the shortest and the longest back-off after transient faults.
	FirstRetry, LastRetry = time.Second, 5 * time.Minute
	// Awaited is the time after which a missing Secret is looked up again.
	Awaited = 5 * time.Second
)

// Reasons of conditions that Flux does not have.
const (
	// ReasonUnsupported means that a field is set that is not supported yet.
	ReasonUnsupported = "UnsupportedField"
	// ReasonAddress means that spec.url, or a redirect, leads to an address that
	// no administrator has allowed.
	ReasonAddress = "AddressNotAllowed"
	// ReasonNewArtifact is Flux's reason of the Event about a new artifact.
	ReasonNewArtifact = "NewArtifact"
)

// Jitter returns d, up to 5 % shorter or longer.
func Jitter(d time.Duration) time.Duration {
	const share = 0.05
	return d + time.Duration(share*(2*rand.Float64()-1)*float64(d)) //nolint:gosec // spreads load, guards nothing
}

// Asked passes changes of the spec, requests for a reconcile, and changes of these annotations.
func Asked(annotations ...string) predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, requested{annotations: append(annotations, meta.ReconcileRequestAnnotation)})
}

// requested passes updates of annotations.
type requested struct {
	predicate.Funcs
	annotations []string
}

// Update reports whether one of them has another value.
func (r requested) Update(e event.UpdateEvent) bool {
	return slices.ContainsFunc(r.annotations, func(key string) bool {
		return e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key]
	})
}

// Sweep removes, once, the artifacts of sources of a kind that were deleted while no process was running. Empty returns an object of
// the kind.
func Sweep(ctx context.Context, hub client.Reader, store *artifact.Store, kind string, empty func() client.Object) {
	// Each source is looked up in the cache, instead of listing the cache
	// once: one that is created in the meantime gets an artifact only after the
	// cache has it, so its artifact is never removed.
	removed, err := store.Sweep(func(owner string) bool {
		name, ours := strings.CutPrefix(owner, kind+"/")
		if !ours {
			return true
		}
		namespace, name, _ := strings.Cut(name, "/")
		return !apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, empty()))
	})
	if err != nil {
		// Artifacts that are left over take up space and do no harm. An error
		// returned here would stop all loops.
		ctrl.LoggerFrom(ctx).Error(err, "some artifacts that nothing refers to are still there")
	}
	if removed > 0 {
		ctrl.LoggerFrom(ctx).Info("removed artifacts that nothing refers to", "count", removed)
	}
}

// LetGo removes the finalizer that a controller of Flux may have set.
func LetGo(ctx context.Context, hub client.Client, object client.Object, finalizer string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(object, finalizer) {
		return nil
	}
	if err := hub.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove finalizer: %w", err))
	}
	return nil
}
