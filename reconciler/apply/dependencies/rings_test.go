package dependencies

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ks is a Kustomization of the source fleet that depends on others.
func ks(name string, on ...string) *kustomizev1.Kustomization {
	out := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	out.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "fleet"}
	for _, on := range on {
		out.Spec.DependsOn = append(out.Spec.DependsOn, kustomizev1.DependencyReference{Name: on})
	}
	return out
}

// made has a Kustomization have applied others.
func made(ks *kustomizev1.Kustomization, names ...string) *kustomizev1.Kustomization {
	var entries []inventory.Entry
	for _, name := range names {
		entries = append(entries, inventory.Entry{ID: inventory.OfKustomization(client.ObjectKey{Namespace: "team", Name: name}), Version: "v1"})
	}
	ks.Status.Inventory = inventory.Record(entries)
	return ks
}

func with(ks *kustomizev1.Kustomization, change func(*kustomizev1.KustomizationSpec)) *kustomizev1.Kustomization {
	change(&ks.Spec)
	return ks
}

// A Kustomization waits for itself by what it depends on, and by what in turn waits for its health.
func TestFindCycle(t *testing.T) {
	wait := func(spec *kustomizev1.KustomizationSpec) { spec.Wait = true }
	checks := func(kind, name string) func(*kustomizev1.KustomizationSpec) {
		return func(spec *kustomizev1.KustomizationSpec) {
			spec.HealthChecks = []meta.NamespacedObjectKindReference{{APIVersion: kustomizev1.GroupVersion.String(), Kind: kind, Name: name}}
		}
	}
	says := func(apiVersion, kind string) func(*kustomizev1.KustomizationSpec) {
		return func(spec *kustomizev1.KustomizationSpec) {
			spec.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: apiVersion, Kind: kind, HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "true"}}}
		}
	}
	const parent = "circular dependency detected: team/app -> team/root, and team/root waits for the health of team/app: " +
		"remove one spec.dependsOn of these, or have team/root not wait for that by its spec.wait or spec.healthChecks"
	for name, tc := range map[string]struct {
		of     *kustomizev1.Kustomization
		others []*kustomizev1.Kustomization
		want   string
	}{
		"it depends on nothing":          {of: ks("app")},
		"it depends on one that is gone": {of: ks("app", "root")},
		"three depend on each other": {of: ks("app", "root"), others: []*kustomizev1.Kustomization{ks("root", "base"), ks("base", "app")},
			want: "circular dependency detected: team/app -> team/root -> team/base -> team/app: remove one spec.dependsOn of these"},
		"its parent waits":     {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(ks("root"), wait), "app")}, want: parent},
		"its parent checks it": {of: ks("app", "root"), others: []*kustomizev1.Kustomization{with(ks("root"), checks("Kustomization", "app"))}, want: parent},
		"its parent waits, and says when a Kustomization is healthy": {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(with(ks("root"), wait), says(kustomizev1.GroupVersion.String(), "Kustomization")), "app")}},
		"its parent checks it, and says when one is":                 {of: ks("app", "root"), others: []*kustomizev1.Kustomization{with(with(ks("root"), checks("Kustomization", "app")), says(kustomizev1.GroupVersion.String(), "Kustomization"))}},
		"its parent says when another kind is healthy":               {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(with(ks("root"), wait), says("apps/v1", "Deployment")), "app")}, want: parent},
		"its parent checks another one":                              {of: ks("app", "root"), others: []*kustomizev1.Kustomization{with(ks("root"), checks("Kustomization", "base"))}},
		"its parent checks another kind":                             {of: ks("app", "root"), others: []*kustomizev1.Kustomization{with(ks("root"), checks("Deployment", "app"))}},
		"its parent waits for nothing":                               {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(ks("root"), "app")}},
		"another one waits":                                          {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(ks("root"), wait), "base")}},
		"its parent is suspended":                                    {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(ks("root"), func(spec *kustomizev1.KustomizationSpec) { spec.Wait, spec.Suspend = true, true }), "app")}},
		"its parent is of another source":                            {of: ks("app", "root"), others: []*kustomizev1.Kustomization{made(with(ks("root"), func(spec *kustomizev1.KustomizationSpec) { spec.Wait, spec.SourceRef.Name = true, "other" }), "app")}},
		"an expression says what ready means":                        {of: with(ks("app", "root"), func(spec *kustomizev1.KustomizationSpec) { spec.DependsOn[0].ReadyExpr = "true" }), others: []*kustomizev1.Kustomization{made(with(ks("root"), wait), "app")}},
		"one between them is of another source": {of: ks("app", "base"), others: []*kustomizev1.Kustomization{
			with(ks("base", "root"), func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Name = "other" }), made(with(ks("root"), wait), "app")}},
		"its parent waits, by another one": {of: ks("app", "base"), others: []*kustomizev1.Kustomization{ks("base", "root"), made(with(ks("root"), wait), "app")},
			want: "circular dependency detected: team/app -> team/base -> team/root, and team/root waits for the health of team/app: " +
				"remove one spec.dependsOn of these, or have team/root not wait for that by its spec.wait or spec.healthChecks"},
	} {
		t.Run(name, func(t *testing.T) {
			err := FindCycle(t.Context(), tc.of, func(_ context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error) {
				for _, other := range tc.others {
					if client.ObjectKeyFromObject(other) == key {
						return other, nil
					}
				}
				return nil, apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			})
			outcome, got := loop.As(err, ""), ""
			if outcome != nil {
				got = outcome.Err.Error()
			}
			if got != tc.want || outcome != nil && (outcome.Class != loop.ClassStalled || outcome.Reason != ReasonCycle) {
				t.Errorf("got  %s\nwant %s\n%+v", got, tc.want, outcome)
			}
		})
	}
}
