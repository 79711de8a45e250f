package members_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// TestHolds: a member is asked itself whether it has what a Work asks for.
func TestHolds(t *testing.T) {
	env := shared.Env(t)
	r, _ := registry(t)
	work := func(objects ...*unstructured.Unstructured) *workv1alpha1.Work {
		out := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-eu-1", Name: "conf"}}
		for _, obj := range objects {
			raw, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			out.Spec.Workload.Manifests = append(out.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
		}
		return out
	}
	ns := env.Namespace(t)
	one, two := managed(ns, "one", map[string]any{}), managed(ns, "two", map[string]any{})
	if known, err := r.HasWork(t.Context(), "eu-1", work(one)); known || err != nil {
		t.Errorf("a cluster that is not connected: %t, %v", known, err)
	}
	m, err := r.Connect(target(env, "eu-1", ""))
	if err == nil {
		err = m.Prove(t.Context())
	}
	if err == nil {
		err = env.Hub.Create(t.Context(), one)
	}
	if err != nil {
		t.Fatal(err)
	}
	if known, err := r.HasWork(t.Context(), "eu-1", work(one)); !known || err != nil {
		t.Errorf("what is there: %t, %v", known, err)
	}
	if known, err := r.HasWork(t.Context(), "eu-1", work(one, two)); !known || !apierrors.IsNotFound(err) {
		t.Errorf("one of two is there: %t, %v", known, err)
	}
	one.SetFinalizers([]string{"example.com/stays"})
	if err := env.Hub.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if known, err := r.HasWork(t.Context(), "eu-1", work(one)); !known || !errors.Is(err, members.ErrLeaves) {
		t.Errorf("what is on its way out: %t, %v", known, err)
	}
	if err := env.Hub.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "one"}, one); err != nil {
		t.Fatal(err)
	}
	one.SetFinalizers(nil)
	if err := env.Hub.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
}
