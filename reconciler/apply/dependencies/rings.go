package dependencies

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/dependency"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// FindCycle returns a stalled error if a Kustomization waits for itself, directly or through others that
// can be read.
func FindCycle(ctx context.Context, ks *kustomizev1.Kustomization, read Read) error {
	reached := map[client.ObjectKey]bool{client.ObjectKeyFromObject(ks): true}
	all := []dependency.Dependent{ks}
	ways := []way{{of: ks}}
	for i := 0; i < len(all); i++ {
		for _, ref := range all[i].GetDependsOn() {
			key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
			if key.Namespace == "" {
				key.Namespace = all[i].GetNamespace()
			}
			if reached[key] {
				continue
			}
			reached[key] = true
			next, err := read(ctx, key)
			if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
				return fmt.Errorf("read the dependency %s: %w", key, err)
			}
			if err == nil {
				all = append(all, next)
				ways = append(ways, ways[i].to(next))
			}
		}
	}
	if _, err := dependency.Sort(all); err != nil {
		return loop.Stalled(ReasonCycle, fmt.Errorf("%w: remove one spec.dependsOn of these", err))
	}
	for _, w := range ways[1:] {
		if w.strict && waitsForHealth(w.of, ks) {
			return loop.Stalled(ReasonCycle, fmt.Errorf("circular dependency detected: %s, and %s waits for the health of %s: remove one spec.dependsOn of these, or have %[2]s not wait for that by its spec.wait or spec.healthChecks",
				strings.Join(w.names, " -> "), client.ObjectKeyFromObject(w.of), client.ObjectKeyFromObject(ks)))
		}
	}
	return nil
}

// way is how a dependency was reached: by which Kustomizations, and whether each of them has to have applied the same revision of one
// source as the next.
type way struct {
	of     *kustomizev1.Kustomization
	names  []string
	strict bool
}

// to is the way to a dependency of what this one leads to.
func (w way) to(next *kustomizev1.Kustomization) way {
	names, strict := w.names, w.strict
	if len(names) == 0 {
		names, strict = []string{client.ObjectKeyFromObject(w.of).String()}, true
	}
	byExpression := slices.ContainsFunc(w.of.Spec.DependsOn, func(ref kustomizev1.DependencyReference) bool {
		return ref.ReadyExpr != "" && Key(w.of, ref) == client.ObjectKeyFromObject(next)
	})
	return way{of: next, names: append(slices.Clip(names), client.ObjectKeyFromObject(next).String()), strict: strict && !byExpression && sameSource(w.of, next)}
}

func sameSource(a, b *kustomizev1.Kustomization) bool {
	return inventory.SourceOf(a) == inventory.SourceOf(b)
}

// waitsForHealth reports whether a Kustomization is not ready before another one is. Where spec.healthCheckExprs says when a
// Kustomization is healthy that may be at any time.
func waitsForHealth(ks, other *kustomizev1.Kustomization) bool {
	if ks.Spec.Suspend || other.Spec.Suspend {
		return false
	}
	checked := health.Listed(ks)
	if ks.Spec.Wait {
		var err error
		if checked, err = inventory.Here(ks); err != nil {
			return false // whoever applies it reports that
		}
	}
	id := inventory.OfKustomization(client.ObjectKeyFromObject(other))
	return slices.ContainsFunc(checked, func(e inventory.Entry) bool {
		return e.ID == id && !slices.ContainsFunc(ks.Spec.HealthCheckExprs, func(c kustomize.CustomHealthCheck) bool {
			return schema.FromAPIVersionAndKind(c.APIVersion, c.Kind) == e.GroupVersionKind()
		})
	})
}
