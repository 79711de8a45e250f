package applier

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

func config(name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"key": "value"}}}
	obj.SetAPIVersion("v1")
	obj.SetKind("ConfigMap")
	obj.SetNamespace("shop")
	obj.SetName(name)
	for _, c := range change {
		c(obj)
	}
	return obj
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) { obj.SetAnnotations(map[string]string{key: value}) }
}

func TestPrunable(t *testing.T) {
	deleting := func(obj *unstructured.Unstructured) {
		now := metav1.Now()
		obj.SetDeletionTimestamp(&now)
	}
	flux := func(obj *unstructured.Unstructured) {
		obj.SetLabels(map[string]string{
			"app.kubernetes.io/part-of": "flux", "app.kubernetes.io/instance": "flux-system",
			"kustomize.toolkit.fluxcd.io/name": "flux-system", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		})
	}
	definition := func(name string) func(obj *unstructured.Unstructured) {
		return func(obj *unstructured.Unstructured) {
			obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
			obj.SetName(name)
		}
	}
	cases := map[string]struct {
		observed *unstructured.Unstructured
		want     bool
	}{
		"a version before applied what installs Flux":                  {observed: config("a", flux)},
		"a version before applied a definition of the control plane's": {observed: config("a", definition("kustomizations.kustomize.toolkit.fluxcd.io"))},
		"it defines another kind":                                      {observed: config("a", definition("gadgets.example.com")), want: true},
		"it exists and is ours":                                        {observed: config("a"), want: true},
		"it does not exist, or is not ours":                            {},
		"it is being deleted":                                          {observed: config("a", deleting)},
		"it is to be kept":                                             {observed: config("a", annotated("kustomize.toolkit.fluxcd.io/prune", "Disabled"))},
		"it is to be left alone":                                       {observed: config("a", annotated("kustomize.toolkit.fluxcd.io/reconcile", "disabled"))},
		"it says something else":                                       {observed: config("a", annotated("kustomize.toolkit.fluxcd.io/prune", "enabled")), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			entry := inventory.Entry{ID: inventory.IDOf(config("a")), Version: "v1"}
			seen := Observed{}
			if tc.observed != nil {
				seen[entry.ID] = tc.observed
			}
			if got := len(Prunable([]inventory.Entry{entry}, seen)) == 1; got != tc.want {
				t.Errorf("prunable = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestTheFieldComesFirst: a message names the invalid field at its beginning, as messages are shortened.
func TestTheFieldComesFirst(t *testing.T) {
	typed := func(text string) error {
		return apierrors.NewInternalError(errors.New("failed to create typed patch object (shop/web; policy.karmada.io/v1alpha1, Kind=PropagationPolicy): " + text))
	}
	invalid := func(faults ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: "policy.karmada.io", Kind: "PropagationPolicy"}, "web", faults)
	}
	path := field.NewPath("spec", "placement", "replicaScheduling")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"an unknown field": {
			typed(".spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterName: field not declared in schema"),
			"unknown field clusterName at .spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterName",
		},
		"two of them": {
			typed("errors:\n  .spec.a: field not declared in schema\n  .spec.c[name=\"x\"].b: field not declared in schema"),
			`unknown field a at .spec.a; unknown field b at .spec.c[name="x"].b`,
		},
		"a value of another type": {typed(".spec.priority: expected numeric (int or float), got string"), ".spec.priority: expected numeric (int or float), got string"},
		"a value that is not allowed": {
			invalid(field.Required(path, "say how")), "spec.placement.replicaScheduling: Required value: say how",
		},
		"two faults": {
			invalid(field.Required(path, "say how"), field.Required(path.Child("a"), "b")),
			"[spec.placement.replicaScheduling: Required value: say how, spec.placement.replicaScheduling.a: Required value: b]",
		},
		"no field": {apierrors.NewBadRequest("the body makes no sense"), "the body makes no sense"},
	} {
		t.Run(name, func(t *testing.T) {
			f := findingOf(inventory.IDOf(config("a")), tc.err)
			if f == nil || f.Message != tc.want {
				t.Errorf("found %+v, want %q", f, tc.want)
			}
		})
	}
}

func TestRefusalsAreStable(t *testing.T) {
	findings := []Finding{{Object: "Service/a/z", Reason: ReasonForbidden, Message: "no"}}
	for _, name := range []string{"d", "b", "c", "a"} {
		findings = append(findings, Finding{Object: "ConfigMap/shop/" + name, Reason: ReasonInvalidObject, Message: "wrong"})
	}
	err := refuse(findings)
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Reason() != ReasonInvalidObject {
		t.Fatalf("error = %v, want a *Refusal for an invalid object", err)
	}
	want := "ConfigMap/shop/a: wrong; ConfigMap/shop/b: wrong; ConfigMap/shop/c: wrong; and 2 more objects"
	if err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	if refuse(nil) != nil {
		t.Error("no finding is a refusal")
	}
}

func TestFindings(t *testing.T) {
	resource := schema.GroupResource{Resource: "configmaps"}
	cases := map[string]struct {
		err  error
		want string
	}{
		"forbidden":         {err: apierrors.NewForbidden(resource, "a", errors.New("no\nrole")), want: ReasonForbidden},
		"protected":         {err: apierrors.NewForbidden(resource, "a", errors.New("This resource is protected, please make sure to remove the label: resourcetemplate.karmada.io/deletion-protected")), want: ReasonProtected},
		"invalid":           {err: apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a", nil), want: ReasonInvalidObject},
		"too large":         {err: apierrors.NewRequestEntityTooLargeError("limit is 3145728"), want: ReasonObjectTooLarge},
		"an unknown field":  {err: apierrors.NewInternalError(errors.New("failed to create typed patch object: .data.x: field not declared in schema")), want: ReasonInvalidObject},
		"the server is ill": {err: apierrors.NewInternalError(errors.New("etcd is gone"))},
		"a conflict":        {err: apierrors.NewConflict(resource, "a", errors.New("x"))},
		"no answer":         {err: errors.New("connection refused")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if f := findingOf(inventory.IDOf(config("a")), tc.err); f != nil {
				got = f.Reason
				if strings.Contains(f.Message, "\n") {
					t.Errorf("message = %q, want one line", f.Message)
				}
			}
			if got != tc.want {
				t.Errorf("reason = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMemoryOnlyKnowsWhatHasNotChanged(t *testing.T) {
	var m memory
	owner := types.NamespacedName{Namespace: "team", Name: "web"}
	observed := config("a", func(obj *unstructured.Unstructured) { obj.SetUID("1") })
	m.put(owner, config("a"), observed)
	change := func(with func(*unstructured.Unstructured)) *unstructured.Unstructured {
		out := observed.DeepCopy()
		with(out)
		return out
	}
	cases := map[string]struct {
		owner             types.NamespacedName
		desired, observed *unstructured.Unstructured
		want              bool
	}{
		"the same": {owner: owner, desired: config("a"), observed: observed, want: true},
		"another status and version": {
			owner: owner, desired: config("a"), want: true,
			observed: change(func(obj *unstructured.Unstructured) {
				obj.SetResourceVersion("9")
				obj.Object["status"] = map[string]any{"ready": true}
			}),
		},
		"other content":    {owner: owner, desired: config("a"), observed: change(func(obj *unstructured.Unstructured) { obj.Object["data"] = map[string]any{} })},
		"another label":    {owner: owner, desired: config("a"), observed: change(func(obj *unstructured.Unstructured) { obj.SetLabels(map[string]string{"x": "y"}) })},
		"created anew":     {owner: owner, desired: config("a"), observed: change(func(obj *unstructured.Unstructured) { obj.SetUID("2") })},
		"another wish":     {owner: owner, desired: config("a", annotated("x", "y")), observed: observed},
		"another object":   {owner: owner, desired: config("b"), observed: observed},
		"of another owner": {owner: types.NamespacedName{Name: "other"}, desired: config("a"), observed: observed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := m.has(tc.owner, tc.desired, tc.observed); got != tc.want {
				t.Errorf("has = %v, want %v", got, tc.want)
			}
		})
	}
	m.keep(owner, []Change{{Desired: config("b")}})
	if m.has(owner, config("a"), observed) {
		t.Error("what left the set is still remembered")
	}
}

func TestTwinNamesAreValid(t *testing.T) {
	got := map[string]string{}
	for _, name := range []string{"web", strings.Repeat("a", 253), "a-very-long-name-that-is-cut-at-a-dash--x"} {
		got[name] = twinName(name)
	}
	want := map[string]string{
		"web":                    "web-recreate-check",
		strings.Repeat("a", 253): strings.Repeat("a", 40) + "-recreate-check",
		"a-very-long-name-that-is-cut-at-a-dash--x": "a-very-long-name-that-is-cut-at-a-dash-recreate-check",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
