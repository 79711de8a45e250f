package bindings_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
)

func binding() *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-deployment", UID: "b-1", Generation: 3,
			Labels:      map[string]string{"a/b~c": "1", "gone": "x"},
			Annotations: map[string]string{"kept": "y"},
			Finalizers:  []string{workv1alpha2.BindingControllerFinalizer},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "7"},
			Replicas:           2,
			Clusters:           []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}},
			ConflictResolution: policyv1alpha1.ConflictAbort,
		},
	}
}

// TestPatch applies each patch to the object it was made for and compares the
// result with what was desired.
func TestPatch(t *testing.T) {
	cases := map[string]func(b *workv1alpha2.ResourceBinding){
		"nothing": func(*workv1alpha2.ResourceBinding) {},
		"labels with characters that pointers escape": func(b *workv1alpha2.ResourceBinding) {
			b.Labels = map[string]string{"a/b~c": "2", "new/key": "z"}
		},
		"annotations where there are some": func(b *workv1alpha2.ResourceBinding) { b.Annotations["x/y"] = "{}" },
		"the last label goes":              func(b *workv1alpha2.ResourceBinding) { b.Labels = nil },
		"an owner": func(b *workv1alpha2.ResourceBinding) {
			b.OwnerReferences = []metav1.OwnerReference{{Name: "web", UID: "t-1"}}
		},
		"another finalizer":                    func(b *workv1alpha2.ResourceBinding) { b.Finalizers = append(b.Finalizers, "x/y") },
		"replicas and clusters":                func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Spec.Clusters[0].Replicas = 3, 3 },
		"a field that goes":                    func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil },
		"a field that comes":                   func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = &policyv1alpha1.Placement{} },
		"an empty list is the same as no list": func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{} },
	}
	for name, edit := range cases {
		t.Run(name, func(t *testing.T) {
			current, desired := binding(), binding()
			edit(desired)
			patch, some, err := bindings.Patch(current, desired)
			if err != nil {
				t.Fatal(err)
			}
			got := current
			if some {
				data, err := patch.Data(current)
				if err != nil {
					t.Fatal(err)
				}
				got = apply(t, current, data)
			}
			want := apply(t, desired, []byte("[]"))
			if diff := cmp.Diff(want, apply(t, got, []byte("[]"))); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchHoldsForOneGeneration(t *testing.T) {
	current, desired := binding(), binding()
	desired.Spec.Replicas = 9
	patch, _, err := bindings.Patch(current, desired)
	if err != nil {
		t.Fatal(err)
	}
	data, err := patch.Data(current)
	if err != nil {
		t.Fatal(err)
	}
	later := binding()
	later.Generation++
	if _, err := tryApply(t, later, data); !errors.Is(err, jsonpatch.ErrTestFailed) {
		t.Errorf("patch on a later generation: %v, want a failed test", err)
	}
}

// TestPatchHoldsForOneRecord: who writes into the record of another does not take back what that one wrote meanwhile.
func TestPatchHoldsForOneRecord(t *testing.T) {
	const key = workv1alpha2.SchedulingDecisionAnnotation
	recorded := func(text string) *workv1alpha2.ResourceBinding {
		b := binding()
		b.Annotations = map[string]string{key: text}
		return b
	}
	for name, tc := range map[string]struct {
		later string
		want  error
	}{
		"the record is what it was": {later: "one"},
		"it is another by then":     {later: "other", want: jsonpatch.ErrTestFailed},
	} {
		t.Run(name, func(t *testing.T) {
			patch, _, err := bindings.PatchOfRecord(recorded("one"), recorded("two"))
			if err != nil {
				t.Fatal(err)
			}
			data, err := patch.Data(recorded("one"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tryApply(t, recorded(tc.later), data); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

func TestIsStale(t *testing.T) {
	resource := schema.GroupResource{Group: "work.karmada.io", Resource: "resourcebindings"}
	cases := map[string]struct {
		err  error
		want bool
	}{
		"a failed test of a JSON patch": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "testing value failed", 0, false), true},
		"the object is gone":            {apierrors.NewNotFound(resource, "web"), true},
		"a conflict":                    {apierrors.NewConflict(resource, "web", errors.New("uid")), true},
		"refused by validation":         {apierrors.NewInvalid(schema.GroupKind{}, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")}), false},
		"refused by authorization":      {apierrors.NewForbidden(resource, "web", nil), false},
		"no answer":                     {errors.New("connection refused"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bindings.IsStale(tc.err); got != tc.want {
				t.Errorf("IsStale = %v, want %v", got, tc.want)
			}
		})
	}
}

func apply(t *testing.T, b *workv1alpha2.ResourceBinding, patch []byte) *workv1alpha2.ResourceBinding {
	t.Helper()
	out, err := tryApply(t, b, patch)
	if err != nil {
		t.Fatalf("apply %s: %v", patch, err)
	}
	return out
}

func tryApply(t *testing.T, b *workv1alpha2.ResourceBinding, patch []byte) (*workv1alpha2.ResourceBinding, error) {
	t.Helper()
	doc, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := p.Apply(doc)
	if err != nil {
		return nil, err
	}
	out := &workv1alpha2.ResourceBinding{}
	if err := json.Unmarshal(patched, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}
