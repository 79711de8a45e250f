package switchover_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/switchover"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// carried are ConfigMaps that loops carry, by name: with the owner that their labels name, and annotations.
type carried map[string]*unstructured.Unstructured

func (c carried) Get(_ context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	if obj := c[key.Name]; obj != nil {
		return obj, templatestore.Present, nil
	}
	return nil, templatestore.Absent, nil
}

func carriedFor(owner string, annotations map[string]string) carried {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	obj.SetNamespace("team")
	obj.SetName("a")
	obj.SetLabels(inventory.OwnerLabels(key(owner)))
	obj.SetAnnotations(annotations)
	return carried{"a": obj}
}

// An override that goes with its Kustomization counts for as long as what it means is as it was, and would be carried without it.
func TestForWhomRetiredRulesCount(t *testing.T) {
	gone, now := inventory.ID{}, at(present.Digest, present.Revision)
	switched := says(revisiongate.Condition, metav1.ConditionTrue, meta.ProgressingReason)
	same := func(ks *kustomizev1.Kustomization) { ks.Labels = map[string]string{"differs": "no"} }
	stalled := says(meta.StalledCondition, metav1.ConditionTrue, "PruneBlocked")
	suspended := func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }
	config := configs("a")[0].ID
	late := func(names ...string) switchover.Dependants {
		var out switchover.Dependants
		for _, name := range names {
			out.Late = append(out.Late, key(name))
		}
		return out
	}
	begun := switchover.Dependants{Begun: []client.ObjectKey{key("shelf")}}
	for name, tc := range map[string]struct {
		others    []client.Object
		wants     map[string][]string
		templates carried
		after     time.Duration
		want      switchover.Dependants
		waits     string
	}{
		"nobody has what it means":                     {others: []client.Object{named("shelf", owns("b"))}},
		"one has yet to write what it means":           {others: []client.Object{named("shelf", owns("a"))}, want: late("shelf"), waits: "OverridePolicy/team/rule counts until Kustomization team/shelf has begun with revision main@sha1:2, which changes what it means"},
		"one is about to get what it means":            {others: []client.Object{named("shelf")}, wants: map[string][]string{"shelf": {"a"}}, want: late("shelf"), waits: "OverridePolicy/team/rule counts until Kustomization team/shelf has begun with revision main@sha1:2, which changes what it means"},
		"one is about to get an override for it":       {others: []client.Object{named("shelf")}, wants: map[string][]string{"shelf overrides": {"a"}}, want: late("shelf"), waits: "OverridePolicy/team/rule counts until Kustomization team/shelf has begun with revision main@sha1:2, which changes what it means"},
		"one that gets it is about to be made":         {others: []client.Object{named("root")}, wants: map[string][]string{"root makes": {"fresh"}, "fresh": {"a"}}, want: late("fresh"), waits: "OverridePolicy/team/rule counts until Kustomization team/fresh has begun with revision main@sha1:2, which changes what it means"},
		"it has begun":                                 {others: []client.Object{named("shelf", owns("a"), switched)}, want: begun},
		"it has begun, and waits for this one":         {others: []client.Object{named("shelf", owns("a"), now, says(revisiongate.Condition, metav1.ConditionTrue, revisiongate.ReasonWritten))}, want: begun},
		"it has applied it":                            {others: []client.Object{named("shelf", owns("a"), now)}},
		"the commit changes nothing of it":             {others: []client.Object{named("shelf", owns("a"), same)}},
		"it refuses the commit":                        {others: []client.Object{named("shelf", owns("a"), tries, says(meta.ReadyCondition, metav1.ConditionFalse, "BuildFailed"))}},
		"it is suspended":                              {others: []client.Object{named("shelf", owns("a"), suspended)}},
		"it depends on this one":                       {others: []client.Object{named("shelf", owns("a"), dependsOn("shop"))}},
		"it is a tenant's":                             {others: []client.Object{named("shelf", owns("a"), stranger)}},
		"it does not come within half a minute":        {others: []client.Object{named("shelf", owns("a"))}, after: 30 * time.Second},
		"it has begun, but is slow":                    {others: []client.Object{named("shelf", owns("a"), switched)}, after: time.Hour, want: begun},
		"what it means goes as well":                   {others: []client.Object{named("shelf", owns("a"), deleted)}, templates: carriedFor("shelf", nil), want: switchover.Dependants{Going: config}, waits: "OverridePolicy/team/rule counts until ConfigMap/team/a, for which it means something, is gone as well"},
		"what it means is gone":                        {others: []client.Object{named("shelf", owns("a"), deleted)}, want: switchover.Dependants{Going: gone}},
		"another one has taken it by now":              {others: []client.Object{named("shelf", owns("a"), deleted)}, templates: carriedFor("other", nil)},
		"it stays, as people said":                     {others: []client.Object{named("shelf", owns("a"), deleted)}, templates: carriedFor("shelf", map[string]string{"kustomize.toolkit.fluxcd.io/prune": "disabled"})},
		"the brake holds it":                           {others: []client.Object{named("shelf", owns("a"), deleted, stalled)}, templates: carriedFor("shelf", nil)},
		"it is left as it is":                          {others: []client.Object{named("shelf", owns("a"), deleted, func(ks *kustomizev1.Kustomization) { ks.Spec.Prune = false })}, templates: carriedFor("shelf", nil)},
		"what it means does not go in half a minute":   {others: []client.Object{named("shelf", owns("a"), deleted)}, templates: carriedFor("shelf", nil), after: 30 * time.Second},
		"what goes as well means something else":       {others: []client.Object{named("shelf", owns("b"), deleted)}, templates: carriedFor("shelf", nil)},
		"more than twenty have yet to write it":        {others: many(21, owns("a"))},
		"what more than twenty get is not looked into": {others: append(many(21), named("shelf", owns("a"))), wants: map[string][]string{"n0": {"a"}}, want: late("shelf"), waits: "OverridePolicy/team/rule counts until Kustomization team/shelf has begun with revision main@sha1:2, which changes what it means"},
	} {
		t.Run(name, func(t *testing.T) {
			x := groups(clocktesting.NewFakePassiveClock(noon.Add(tc.after)), tc.wants, append(tc.others, named("shop", deleted))...)
			got, err := switchover.NewRetirements(x, tc.templates).Of(t.Context(), switchover.Retired{Of: named("shop", deleted), At: present, Rules: []*unstructured.Unstructured{overrides("team", "a")}})
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("it counts for (-want +got):\n%s\n%v", diff, err)
			}
			if waits := got.Waits(inventory.IDOf(overrides("team", "a")), present.Revision, ""); waits != tc.waits {
				t.Errorf("it waits: %q, want %q", waits, tc.waits)
			}
		})
	}
}

// many are Kustomizations that have yet to write the artifact.
func many(count int, change ...func(*kustomizev1.Kustomization)) []client.Object {
	var out []client.Object
	for i := range count {
		out = append(out, named(fmt.Sprintf("n%d", i), change...))
	}
	return out
}
