package health_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

const secret = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web"},"data":{"token":"ey-a-token","when":"ey-a-token"}}`

// TestFaultsOfExpressionsHoldNoValues: a value that an expression reads may be a password.
func TestFaultsOfExpressionsHoldNoValues(t *testing.T) {
	cases := map[string]struct {
		checks kustomize.HealthCheckExpressions
		want   string
	}{
		"a text that is no number":          {kustomize.HealthCheckExpressions{Current: "int(data.token) == 1"}, "spec.healthCheckExprs[0].current: the expression has no result: what it does cannot be done"},
		"a text that is no duration":        {kustomize.HealthCheckExpressions{Current: "true", Failed: "duration(data.when) > duration('1s')"}, "spec.healthCheckExprs[0].failed: the expression has no result: what it does"},
		"a field that is named by a value":  {kustomize.HealthCheckExpressions{Current: "true", InProgress: "data[data.token] == ''"}, "spec.healthCheckExprs[0].inProgress: the expression has no result: a field that it uses is not there"},
		"a field that is not there":         {kustomize.HealthCheckExpressions{Current: "data.nothing == 'x'"}, "spec.healthCheckExprs[0].current: the expression has no result: there is no nothing"},
		"a value that says neither yes nor": {kustomize.HealthCheckExpressions{Current: "data.token"}, "spec.healthCheckExprs[0].current: the expression has no result: it says neither true nor false"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
			obj := object(t, secret)
			e := entryOf(obj)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: obj}, As: hub,
				Checks: []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: tc.checks}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := got.Verdicts[0].Reason; !strings.HasPrefix(got, tc.want) || strings.Contains(got, "ey-a-token") {
				t.Errorf("reason = %q, want it to begin with %q and to hold no value", got, tc.want)
			}
		})
	}
}

// denied may read nothing.
type denied struct{ client.Reader }

func (denied) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, errors.New("no"))
}

// TestWhatMayNotBeReadIsNotReported: an account that may not read an object does not learn
// whether it exists.
func TestWhatMayNotBeReadIsNotReported(t *testing.T) {
	obj := object(t, secret)
	for name, hub := range map[string]client.Client{
		"it is there":     fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(obj, binding(t, obj)).Build(),
		"it is not there": fake.NewClientBuilder().WithScheme(scheme.New()).Build(),
	} {
		t.Run(name, func(t *testing.T) {
			e := entryOf(obj)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{Entries: []inventory.Entry{e}, As: denied{}})
			if err != nil {
				t.Fatal(err)
			}
			want := []health.Verdict{{ID: e.ID, State: rollup.Failed, Reason: `configmaps "web" is forbidden: no`, Denied: true}}
			if diff := cmp.Diff(want, got.Verdicts); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPartsAreOfWhatWasApplied: an inventory is part of a status, which tenants may write, and may
// name objects of others.
func TestPartsAreOfWhatWasApplied(t *testing.T) {
	obj := object(t, config)
	bound := binding(t, obj)
	selecting := policy(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"})
	for name, objects := range map[string][]client.Object{
		"bound and sent":             {bound, work(bound)},
		"a policy is to take it up":  {selecting},
		"no policy is to take it up": {},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(obj): obj}})
			got, err := reader.Parts(t.Context(), client.ObjectKey{Namespace: "thief", Name: "web"}, []inventory.Entry{entryOf(obj)})
			if err != nil || len(got) > 0 {
				t.Errorf("parts = %v, %v, want none", got, err)
			}
		})
	}
}

// TestWhatAnotherKustomizationAppliesToo: an object that another Kustomization has overwritten is reported.
func TestWhatAnotherKustomizationAppliesToo(t *testing.T) {
	obj := object(t, config)
	bound := binding(t, obj)
	shared := obj.DeepCopy()
	shared.SetAnnotations(map[string]string{"kustomize.toolkit.fluxcd.io/ssa": "Merge"})
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		by   client.ObjectKey // the Kustomization that has it in its inventory
		want string
	}{
		"one of the same namespace":              {obj, client.ObjectKey{Namespace: owner.Namespace, Name: "other"}, "Kustomization team/web applies it, too"},
		"one of another, of an object of ours":   {obj, client.ObjectKey{Namespace: "shop", Name: "other"}, "another Kustomization applies it, too"},
		"one of another, of an object of theirs": {obj, client.ObjectKey{Namespace: "thief", Name: "other"}, ""},
		"an object that is meant for several":    {shared, client.ObjectKey{Namespace: owner.Namespace, Name: "other"}, ""},
	} {
		for presence, objects := range map[string][]client.Object{"bound": {bound}, "not bound": nil} {
			t.Run(name+", "+presence, func(t *testing.T) {
				hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
				reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(tc.obj): tc.obj}})
				var want []rollup.Part
				if tc.want != "" {
					want = []rollup.Part{{Object: "ConfigMap shop/web", State: rollup.Progressing, Reason: tc.want}}
				}
				got, err := reader.Parts(t.Context(), tc.by, []inventory.Entry{entryOf(tc.obj)})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			})
		}
	}
}
