package health_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestPoliciesOfWhatIsUnchanged: a policy that the cache does not have yet counts, unless nothing was applied lately.
func TestPoliciesOfWhatIsUnchanged(t *testing.T) {
	template := object(t, config)
	cached := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	live := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(policy(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"})).Build()
	e := entryOf(template)
	for unchanged, want := range map[bool]rollup.State{false: rollup.Progressing, true: rollup.Healthy} {
		got, err := health.New(health.Deps{Hub: cached, Live: live, Templates: templates{}}).Assess(t.Context(), health.Request{
			Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: template}, As: cached, Unchanged: unchanged,
		})
		if err != nil {
			t.Fatal(err)
		}
		if is := got.Verdicts[0].State; is != want {
			t.Errorf("settled %t: %v, want %v", unchanged, is, want)
		}
	}
}
