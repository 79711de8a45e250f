package siblings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// asUpcoming returns a Kustomization as upcoming ones, which a revision is about to write, give it another spec, and whether they do.
// By the spec that it has it may hold what that very revision takes from it.
func asUpcoming(ks *kustomizev1.Kustomization, upcoming []*kustomizev1.Kustomization) (*kustomizev1.Kustomization, bool) {
	i := slices.IndexFunc(upcoming, func(next *kustomizev1.Kustomization) bool {
		return client.ObjectKeyFromObject(next) == client.ObjectKeyFromObject(ks)
	})
	if i < 0 || equality.Semantic.DeepEqual(ks.Spec, upcoming[i].Spec) {
		return ks, false
	}
	next := upcoming[i].DeepCopy()
	next.UID, next.Generation = "", 0 // nothing that was learned is of that
	return next, true
}

const (
	// parentPoll is the pause before a parent is looked at again, if the watch missed that it has applied the artifact.
	parentPoll = 5 * time.Second
	// quiet is for how long nothing is said of a wait for a parent, which mostly ends at once.
	quiet = 3 * time.Second
	// mostAncestors is how many parents are asked, one above the other.
	mostAncestors = 32
)

// Wait is who may have to wait for siblings.
type Wait struct {
	Of *kustomizev1.Kustomization
	At Artifact
	// Age is for how long the source has had the artifact.
	Age time.Duration
	// As reads ConfigMaps and Secrets, as the account that the Kustomization acts as.
	As client.Reader
	// Differs reports whether an artifact may hold something else for a Kustomization than what it has applied last.
	Differs func(ctx context.Context, ks *kustomizev1.Kustomization, at Artifact) (bool, error)
}

// Await returns an error that waits where something that a Kustomization is built of is not that of the artifact yet: its spec, which its
// parent has yet to give it, or the values of variables, which a sibling has yet to apply. What it held with those that there are would be
// of neither revision. Where the source has had the artifact for a short time only, it returns instead when to ask again.
func Await(ctx context.Context, x *Index, w Wait) (again time.Duration, err error) {
	if w.At.Digest == "" {
		return 0, nil
	}
	why, err := awaiting{x}.awaited(ctx, w)
	switch {
	case err != nil || why == "":
		return 0, err
	case w.Age < quiet:
		return quiet - w.Age, nil
	}
	return 0, loop.Waiting(meta.ProgressingReason, parentPoll, fmt.Errorf("waiting for Kustomization %s at revision %s: until then nothing of it is applied", why, w.At.Revision))
}

// awaiting finds out who has to be waited for.
type awaiting struct{ *Index }

// awaited says who is waited for, and why; empty for nobody.
func (x awaiting) awaited(ctx context.Context, w Wait) (string, error) {
	next, err := x.upcoming(ctx, w, w.Of, mostAncestors)
	if err != nil {
		return "", err
	}
	if next != w.Of {
		parent, _ := inventory.OwnerOf(w.Of)
		return parent.String() + ", which gives this one another spec", nil
	}
	return x.variables(ctx, w)
}

// variables says which sibling has yet to apply ConfigMaps or Secrets that hold variables; empty for none.
func (x awaiting) variables(ctx context.Context, w Wait) (string, error) {
	if w.Of.Spec.PostBuild == nil {
		return "", nil
	}
	own := client.ObjectKeyFromObject(w.Of)
	for _, ref := range w.Of.Spec.PostBuild.SubstituteFrom {
		source := &metav1.PartialObjectMetadata{}
		source.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind))
		if err := w.As.Get(ctx, client.ObjectKey{Namespace: own.Namespace, Name: ref.Name}, source); err != nil {
			continue // the build says so
		}
		key, owned := inventory.OwnerOf(source)
		if !owned || key == own {
			continue
		}
		holder := &kustomizev1.Kustomization{}
		if err := x.hub.Get(ctx, key, holder, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read the Kustomization %s: %w", key, err)
		} else if err != nil || !x.Is(holder, own.Namespace, w.At) || Wrote(holder, w.At.Revision) || refused(holder, w.At.Revision) {
			continue
		}
		if leads, err := x.leads(ctx, holder, own, w.At); err != nil || !leads {
			return "", err
		}
		if differs, err := w.Differs(ctx, holder, w.At); err == nil && differs {
			return fmt.Sprintf("%s, which holds the %s %s of spec.postBuild.substituteFrom", key, ref.Kind, ref.Name), nil
		}
	}
	return "", nil
}

// refused reports whether a Kustomization, as it is, has tried a revision in vain: what it holds stays as it is.
func refused(ks *kustomizev1.Kustomization, revision string) bool {
	return ks.Status.LastAttemptedRevision == revision && ks.Status.ObservedGeneration == ks.Generation &&
		apimeta.IsStatusConditionFalse(ks.Status.Conditions, meta.ReadyCondition) &&
		apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition).Reason != meta.DependencyNotReadyReason
}

// upcoming returns a Kustomization as it will be once those above it have applied the artifact; the same pointer if it stays as it is.
func (x awaiting) upcoming(ctx context.Context, w Wait, ks *kustomizev1.Kustomization, most int) (*kustomizev1.Kustomization, error) {
	key, owned := inventory.OwnerOf(ks)
	own := client.ObjectKeyFromObject(ks)
	if !owned || key == own || most == 0 {
		return ks, nil
	}
	parent := &kustomizev1.Kustomization{}
	if err := x.hub.Get(ctx, key, parent, client.UnsafeDisableDeepCopy); err != nil { // each child asks: an inventory may be large
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		return ks, nil
	}
	if !x.Is(parent, own.Namespace, w.At) {
		return ks, nil
	}
	next, err := x.upcoming(ctx, w, parent, most-1)
	if err != nil {
		return nil, err
	}
	if next == parent {
		if Wrote(parent, w.At.Revision) {
			return ks, nil
		}
		if differs, err := w.Differs(ctx, parent, w.At); err == nil && !differs {
			return ks, nil
		}
	}
	if leads, err := x.leads(ctx, next, own, w.At); err != nil || !leads {
		return ks, err
	}
	children, err := x.children(ctx, next, w.At)
	if err != nil {
		return nil, err
	}
	child, _ := asUpcoming(ks, children)
	return child, nil
}

// led is what a Kustomization with a spec gives its children at an artifact.
type led struct {
	spec     kustomizev1.KustomizationSpec
	at       Artifact
	children []*kustomizev1.Kustomization
}

// children returns the Kustomizations that one holds at an artifact. Each of them asks, so that it is built once: that variables have other
// values by now is found out by the run that writes them.
func (x awaiting) children(ctx context.Context, of *kustomizev1.Kustomization, at Artifact) ([]*kustomizev1.Kustomization, error) {
	key := client.ObjectKeyFromObject(of)
	x.mu.Lock()
	have := x.led[key]
	x.mu.Unlock()
	if have.at == at && equality.Semantic.DeepEqual(have.spec, of.Spec) {
		return have.children, nil
	}
	wants, err := x.wants(ctx, of, at)
	if err != nil { // what cannot be built leads nobody
		return nil, ctx.Err()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.led[key] = led{of.Spec, at, wants.Children}
	return wants.Children, nil
}

// leads reports whether a Kustomization will apply the artifact whatever becomes of its child. One that is suspended does not, nor one that
// depends on the child, also by others.
func (x awaiting) leads(ctx context.Context, parent *kustomizev1.Kustomization, child client.ObjectKey, at Artifact) (bool, error) {
	if parent.Spec.Suspend || !x.Is(parent, child.Namespace, at) {
		return false, nil
	}
	seen := map[client.ObjectKey]bool{}
	for next := on(parent); len(next) > 0; next = next[1:] {
		key := next[0]
		if key == child {
			return false, nil
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		ks := &kustomizev1.Kustomization{}
		if err := x.hub.Get(ctx, key, ks, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("read the Kustomization %s: %w", key, err)
		}
		next = append(next, on(ks)...)
	}
	return true, nil
}

// on returns the Kustomizations that one depends on.
func on(ks *kustomizev1.Kustomization) []client.ObjectKey {
	var out []client.ObjectKey
	for _, d := range ks.Spec.DependsOn {
		out = append(out, client.ObjectKey{Namespace: cmp.Or(d.Namespace, ks.Namespace), Name: d.Name})
	}
	return out
}

// Wrote reports whether a Kustomization, as it is, has applied all of a revision, whatever it still waits for.
func Wrote(ks *kustomizev1.Kustomization, revision string) bool {
	status := &ks.Status
	switch {
	case status.ObservedGeneration != ks.Generation:
		return false
	case status.LastAppliedRevision == revision:
		return true
	}
	ready := apimeta.FindStatusCondition(status.Conditions, meta.ReadyCondition)
	healthy := apimeta.FindStatusCondition(status.Conditions, meta.HealthyCondition)
	return status.LastAttemptedRevision == revision && ready != nil &&
		(ready.Reason == ReasonHandingOver || healthy != nil && healthy.Reason == ready.Reason && healthy.Message == ready.Message)
}
