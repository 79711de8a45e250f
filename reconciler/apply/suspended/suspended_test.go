package suspended_test

import (
	"context"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/apply/suspended"
	"github.com/flotilla-io/flotilla/reconciler/apply/termination"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const (
	as      = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: gold}}, data: {k: "1"}}`
	changed = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: gold}}, data: {k: "2"}}`
	again   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: gold}}, data: {k: "3"}}`
	added   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: gold, mine: "yes"}}, data: {k: "1", l: "1"}}`
	labels  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: silver}}, data: {k: "1"}}`
	claimed = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, finalizers: [x/y], labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team, tier: gold, propagationpolicy.karmada.io/permanent-id: a}}, data: {k: "1"}}`
	pruned  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, labels: {tier: gold}}, data: {k: "1"}}`
	leftAs  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team}}, data: {k: "1"}}`
	leftIs  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team}}, data: {k: "2"}}`
	others  = `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: shop, labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team}}, data: {k: "1"}}`
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// nothing is a Clusters whose clusters hold nothing.
type nothing struct{}

func (nothing) Remaining(context.Context, client.ObjectKey, []inventory.ID) ([]inventory.ID, error) {
	return nil, nil
}

func (nothing) Leaving(context.Context, client.ObjectKey, []inventory.ID) ([]inventory.ID, error) {
	return nil, nil
}

func (nothing) Unheeded(context.Context, client.ObjectKey, []inventory.Entry) ([]rollup.Part, error) {
	return nil, nil
}

func (nothing) Keeping(context.Context, client.ObjectKey, []inventory.Entry) ([]rollup.Part, error) {
	return nil, nil
}

var web = client.ObjectKey{Namespace: "team", Name: "web"}

// world is a Kustomization that owns a ConfigMap.
type world struct {
	t      *testing.T
	hub    client.Client
	keeper *suspended.Keeper
}

func newWorld(t *testing.T, change func(*kustomizev1.Kustomization), more ...client.Object) *world {
	t.Helper()
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	ks.Spec.Suspend = true
	ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.ID{Namespace: "shop", Name: "a", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"}})
	ks.Status.History = meta.History{{Metadata: map[string]string{"revision": "1"}}}
	ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: meta.ReconciliationSucceededReason, Message: "Applied revision: 1"}}
	if change != nil {
		change(ks)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(ks).WithObjects(append(more, ks)...).Build()
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, apimeta.RESTScopeNamespace)
	w := &world{t: t, hub: hub, keeper: suspended.New(kustomizations.New(hub, hub, clock.RealClock{}), termination.New(nothing{}, hub, mapper))}
	w.keep()
	return w
}

// keep calls the Keeper for the Kustomization, and returns the pause until the next call.
func (w *world) keep() time.Duration {
	w.t.Helper()
	result, err := w.keeper.Keep(w.t.Context(), w.kustomization())
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) kustomization() *kustomizev1.Kustomization {
	w.t.Helper()
	ks := &kustomizev1.Kustomization{}
	if err := w.hub.Get(w.t.Context(), web, ks); err != nil {
		w.t.Fatal(err)
	}
	return ks
}

// TestEdits: changes and deletions of a suspended Kustomization's objects are reported until the objects are as they
// were.
func TestEdits(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kustomizev1.Kustomization)
		steps  []string // each is the object's content, empty for a deletion; "-" calls the Keeper, "^" resumes
		want   string
	}{
		"nothing happens":                             {steps: []string{as}},
		"a field is changed":                          {steps: []string{as, changed}, want: "a"},
		"a label is":                                  {steps: []string{as, labels}, want: "a"},
		"it is changed, and changed back":             {steps: []string{as, changed, as}},
		"it is changed back later":                    {steps: []string{as, changed, "-", again, "-", as}},
		"it is changed twice":                         {steps: []string{as, changed, "-", again}, want: "a"},
		"something is added that Git says nothing of": {steps: []string{as, added}},
		"a policy takes it up":                        {steps: []string{as, claimed}},
		"it is deleted":                               {steps: []string{as, ""}, want: "a gone"},
		"it is deleted and made anew as it was":       {steps: []string{as, "", "-", as}},
		"it is deleted and made anew otherwise":       {steps: []string{as, "", "-", changed}, want: "a"},
		"it is changed and deleted":                   {steps: []string{as, changed, "-", ""}, want: "a gone"},
		"it loses the Kustomization's labels":         {steps: []string{as, pruned}, want: "a"},
		"it is left to others":                        {steps: []string{leftAs, leftIs}},
		"another object is made in its name":          {steps: []string{"", others}},
		"the Kustomization goes on":                   {steps: []string{as, "^", changed}},
		"fields are ignored": {
			change: func(ks *kustomizev1.Kustomization) {
				ks.Spec.Ignore = []kustomizev1.IgnoreRule{{Paths: []string{"/data"}}}
			},
			steps: []string{as, changed},
		},
		"fields are ignored, and it is deleted": {
			change: func(ks *kustomizev1.Kustomization) {
				ks.Spec.Ignore = []kustomizev1.IgnoreRule{{Paths: []string{"/data"}}}
			},
			steps: []string{as, ""}, want: "a gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.change)
			before := object(t, tc.steps[0])
			for _, step := range tc.steps[1:] {
				switch step {
				case "-":
					w.keep()
				case "^":
					w.keeper.Forget(web)
				default:
					now := object(t, step)
					w.keeper.Changed(schema.GroupKind{Kind: "ConfigMap"}, before, now)
					before = now
				}
			}
			if tc.steps[min(1, len(tc.steps)-1)] != "^" {
				w.keep()
			}
			got := ""
			for _, e := range inventory.EditedIn(w.kustomization().Status) {
				if got += e.ID.Name; e.Gone {
					got += " gone"
				}
			}
			if got != tc.want {
				t.Errorf("told of %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWhatIsBeingDeletedMeanwhile: while a Kustomization is suspended, the Keeper still checks whether what left it is
// gone.
func TestWhatIsBeingDeletedMeanwhile(t *testing.T) {
	id := inventory.ID{Namespace: "shop", Name: "old", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}
	blocked := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop, uid: u, deletionTimestamp: "2026-01-02T03:04:05Z", finalizers: [example.com/hold], labels: {kustomize.toolkit.fluxcd.io/name: web, kustomize.toolkit.fluxcd.io/namespace: team}}}`)
	w := newWorld(t, func(ks *kustomizev1.Kustomization) {
		inventory.RecordTerminating(&ks.Status, []inventory.Terminating{{ID: id, UID: "u"}}, true)
	}, blocked)
	const want = "Applied revision: 1; still being deleted: ConfigMap/shop/old (kept by its finalizers: example.com/hold)"
	if got := w.kustomization().Status.Conditions[0].Message; got != want {
		t.Errorf("Ready says %q, want %q", got, want)
	}
	if after := w.keep(); after != 5*time.Second {
		t.Errorf("looks again after %s, want 5s", after)
	}
	blocked.SetFinalizers(nil)
	if err := w.hub.Update(t.Context(), blocked); err != nil {
		t.Fatal(err)
	}
	if after := w.keep(); after != 0 {
		t.Errorf("looks again after %s once it is gone", after)
	}
	ks := w.kustomization()
	if diff := cmp.Diff(map[string]string{"revision": "1"}, ks.Status.History.Latest().Metadata); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if got := ks.Status.Conditions[0].Message; got != "Applied revision: 1" {
		t.Errorf("Ready says %q once it is gone", got)
	}
}
