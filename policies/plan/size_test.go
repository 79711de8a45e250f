package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan"
)

// TestFleetSizes: a template is as large as the loops take it for: by its parts
// if it has several, by its replicas otherwise.
func TestFleetSizes(t *testing.T) {
	parts := []workv1alpha2.Component{{Name: "head", Replicas: 1}, {Name: "workers", Replicas: 4}}
	replicas := func(kinds.Object) (int32, *workv1alpha2.ReplicaRequirements, error) { return 5, nil, nil }
	components := func(parts []workv1alpha2.Component, err error) func(kinds.Object) ([]workv1alpha2.Component, error) {
		return func(kinds.Object) ([]workv1alpha2.Component, error) { return parts, err }
	}
	type size struct {
		Replicas   int32
		Components []workv1alpha2.Component
		Err        string
	}
	for name, tc := range map[string]struct {
		rules kinds.Rules
		opts  placement.Options
		want  size
	}{
		"one with parts is its parts":                 {rules: kinds.Rules{Replicas: replicas, Components: components(parts, nil)}, want: size{Components: parts}},
		"unless parts have no say":                    {rules: kinds.Rules{Replicas: replicas, Components: components(parts, nil)}, opts: placement.Options{NoComponents: true}, want: size{Replicas: 5}},
		"one without parts is its replicas":           {rules: kinds.Rules{Replicas: replicas, Components: components(nil, nil)}, want: size{Replicas: 5}},
		"one of a kind without parts, too":            {rules: kinds.Rules{Replicas: replicas}, want: size{Replicas: 5}},
		"one whose parts cannot be read goes nowhere": {rules: kinds.Rules{Replicas: replicas, Components: components(nil, errors.New("no parts"))}, want: size{Err: "components of Crew web: no parts"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "x.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Crew"}}}}
			policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
			policy.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "x.io/v1", Kind: "Crew"}}
			in := plan.FleetInput{
				Interpreter: interpreter.New(kinds.Table{schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Crew"}: tc.rules}),
				Scheduling:  tc.opts, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
				Clusters: []*clusterv1alpha1.Cluster{c}, Policies: []policyv1alpha1.Policy{policy},
			}
			in.Templates = append(in.Templates, object(t, `{apiVersion: x.io/v1, kind: Crew, metadata: {namespace: shop, name: web}}`))
			p := plan.Fleet(in)[0]
			var got size
			if p.Err != nil {
				got.Err = p.Err.Error()
			}
			if p.Binding != nil {
				got.Replicas, got.Components = p.Binding.BindingSpec().Replicas, p.Binding.BindingSpec().Components
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("size (-want +got):\n%s", diff)
			}
		})
	}
}
