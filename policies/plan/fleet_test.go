package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

const byMaps = "PropagationPolicy shop/configmap, selected all of its kind"

// TestFleetPriorities: a template has the priority of the class that its policy names,
// and goes nowhere while there is none.
func TestFleetPriorities(t *testing.T) {
	prioritized := carrier("v1", "ConfigMap", "east", func(s *policyv1alpha1.PropagationSpec) {
		s.SchedulePriority = &policyv1alpha1.SchedulePriority{PriorityClassSource: "KubePriorityClass", PriorityClassName: "high"}
	})
	type outcome struct {
		Fate     fate
		Priority *workv1alpha2.SchedulePriority
	}
	goes := fate{Why: byMaps, Works: "east", Bound: true}
	cases := map[string]struct {
		policy  policyv1alpha1.Policy
		classes map[string]int32
		want    outcome
	}{
		"none is named":                    {carrier("v1", "ConfigMap", "east"), map[string]int32{"high": 7}, outcome{Fate: goes}},
		"the one that there is":            {prioritized, map[string]int32{"low": 1, "high": 7}, outcome{goes, &workv1alpha2.SchedulePriority{Priority: 7}}},
		"one that is worth nothing is one": {prioritized, map[string]int32{"high": 0}, outcome{goes, &workv1alpha2.SchedulePriority{}}},
		"one that there is not":            {prioritized, map[string]int32{"low": 1}, outcome{Fate: fate{Why: byMaps, Err: propagation.NoPriorityClass(prioritized).Error()}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetOf(t, nil, settings)
			in.Policies, in.Priorities = []policyv1alpha1.Policy{tc.policy}, tc.classes
			p := plan.Fleet(in)[0]
			got := outcome{Fate: fateOf(p)}
			if p.Binding != nil {
				got.Priority = p.Binding.BindingSpec().SchedulePriority
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFleetWaits: a template whose policy waits for overrides, or is Lazy and waits for
// a change, goes no further than it is; what runs stays where it runs.
func TestFleetWaits(t *testing.T) {
	lazy := carrier("v1", "ConfigMap", "west", func(s *policyv1alpha1.PropagationSpec) { s.ActivationPreference = policyv1alpha1.LazyActivation })
	lazy.CreationTimestamp = metav1.Unix(2000, 0)
	dependent := carrier("v1", "ConfigMap", "east", func(s *policyv1alpha1.PropagationSpec) { s.DependentOverrides = []string{"tag", "size"} })
	older, younger := object(t, settings), object(t, settings)
	older.SetCreationTimestamp(metav1.Unix(1000, 0))
	younger.SetCreationTimestamp(metav1.Unix(3000, 0))
	digest, err := propagation.Digest(older)
	if err != nil {
		t.Fatal(err)
	}
	of := func(digest string) []workv1alpha2.Binding {
		return []workv1alpha2.Binding{stored("v1", "ConfigMap", "settings", placed, func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{propagation.DigestAnnotation: digest}
		})}
	}
	needed := of("of another version")
	neededIn("web-crew")(needed[0].(*workv1alpha2.ResourceBinding))
	type outcome struct {
		Outcome propagation.Outcome
		Waits   bool
		Holder  string // of the binding
		Fate    fate
	}
	stays, needs := fate{Why: byMaps, Works: "east", Bound: true}, fate{Why: byMaps, Bound: true, NeededBy: "shop/web-crew"}
	cases := map[string]struct {
		young    bool
		policy   policyv1alpha1.Policy
		bindings []workv1alpha2.Binding
		want     outcome
	}{
		"for overrides":                          {policy: dependent, want: outcome{Outcome: propagation.Waiting, Fate: fate{Why: byMaps, Err: "waiting for dependent overrides: tag, size"}}},
		"for overrides, whatever it has":         {policy: dependent, bindings: of(digest), want: outcome{Outcome: propagation.Waiting, Fate: fate{Why: byMaps, Err: "waiting for dependent overrides: tag, size"}}},
		"for a change":                           {policy: lazy, want: outcome{Outcome: propagation.Carried, Waits: true, Fate: fate{Why: byMaps + ", waits for a change of the template"}}},
		"not where it was made since":            {young: true, policy: lazy, want: outcome{Outcome: propagation.Carried, Holder: "shop/configmap", Fate: fate{Why: byMaps, Works: "west", Bound: true}}},
		"for a change; it runs as it is":         {policy: lazy, bindings: of(digest), want: outcome{Outcome: propagation.Carried, Waits: true, Holder: "shop/configmap", Fate: stays}},
		"for a change; it runs as it was":        {policy: lazy, bindings: of("of another version"), want: outcome{Outcome: propagation.Carried, Waits: true, Holder: "shop/configmap", Fate: fate{Why: byMaps, Bound: true}}},
		"for a change; others need it as it was": {policy: lazy, bindings: needed, want: outcome{Outcome: propagation.Carried, Waits: true, Holder: "shop/configmap", Fate: needs}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetOf(t, nil)
			in.Templates = append(in.Templates, older)
			if tc.young {
				in.Templates[0] = younger
			}
			in.Policies, in.Bindings = []policyv1alpha1.Policy{tc.policy}, tc.bindings
			p := plan.Fleet(in)[0]
			got := outcome{Outcome: p.Outcome, Waits: p.Activation.Waits, Fate: fateOf(p)}
			if p.Binding != nil {
				ref, _ := propagation.Claimed(p.Binding)
				got.Holder = ref.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("template (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFleetClusterScoped: what belongs to no namespace has bindings and Works that say
// so, the same each time.
func TestFleetClusterScoped(t *testing.T) {
	in := fleetOf(t, nil, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}`)
	in.Policies = []policyv1alpha1.Policy{administered(carrier("storage.k8s.io/v1", "StorageClass", "west"), "")}
	first := plan.Fleet(in)[0]
	if diff := cmp.Diff(fate{Why: "ClusterPropagationPolicy storageclass, selected all of its kind", Works: "west", Bound: true}, fateOf(first)); diff != "" {
		t.Fatalf("template (-want +got):\n%s", diff)
	}
	if b, ok := first.Binding.(*workv1alpha2.ClusterResourceBinding); !ok || b.Name != "fast-storageclass" || plan.PermanentID(b) == "" {
		t.Errorf("binding = %v", first.Binding)
	}
	work, id := first.Works[0].Work, plan.PermanentID(first.Binding)
	want := map[string]string{
		workv1alpha2.ClusterResourceBindingPermanentIDLabel: id, workv1alpha2.WorkPermanentIDLabel: plan.WorkID(id, "west"),
	}
	if diff := cmp.Diff(want, work.Labels); diff != "" {
		t.Errorf("labels of the Work (-want +got):\n%s", diff)
	}
	if got := work.Annotations[workv1alpha2.ClusterResourceBindingAnnotationKey]; got != "fast-storageclass" {
		t.Errorf("the Work is of the binding %q", got)
	}
	in.Bindings = []workv1alpha2.Binding{first.Binding}
	again := plan.Fleet(in)[0]
	if diff := cmp.Diff(first.Works, again.Works); diff != "" {
		t.Errorf("Works of the binding that is stored then (-want +got):\n%s", diff)
	}
}

// TestFleetDefinitions: where the definition of a kind goes, objects of the kind can go
// at once; those of no other kind.
func TestFleetDefinitions(t *testing.T) {
	const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.y.io}, spec: {group: y.io, names: {kind: Boat, plural: boats}}}`
	const boat = `{apiVersion: y.io/v1, kind: Boat, metadata: {namespace: shop, name: a}}`
	everywhere := func(s *policyv1alpha1.PropagationSpec) { s.Placement.ClusterAffinity = nil }
	boats, planes := carrier("y.io/v1", "Boat", "", everywhere), carrier("y.io/v1", "Plane", "", everywhere)
	definitions := administered(carrier("apiextensions.k8s.io/v1", "CustomResourceDefinition", "east"), "")
	cases := map[string]struct {
		template string
		policies []policyv1alpha1.Policy
		want     string
	}{
		"its definition goes to east":              {boat, []policyv1alpha1.Policy{boats, definitions}, "east"},
		"its definition goes nowhere":              {boat, []policyv1alpha1.Policy{boats}, ""},
		"the definition is that of something else": {`{apiVersion: y.io/v1, kind: Plane, metadata: {namespace: shop, name: a}}`, []policyv1alpha1.Policy{planes, definitions}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetOf(t, nil, tc.template, definition)
			in.Policies = tc.policies
			for _, c := range in.Clusters {
				c.Status.APIEnablements = append(c.Status.APIEnablements, clusterv1alpha1.APIEnablement{
					GroupVersion: "apiextensions.k8s.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "CustomResourceDefinition"}},
				})
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue})
			}
			for _, p := range plan.Fleet(in) {
				if p.Resource.Namespace != "shop" {
					continue
				}
				if got := fateOf(p); got.Works != tc.want || (got.Err == "") != (tc.want != "") {
					t.Errorf("goes to %q, want %q: %s", got.Works, tc.want, got.Err)
				}
			}
		})
	}
}
