package plan_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// A Crew refers to what its rule says.
const (
	webCrew  = `{apiVersion: x.io/v1, kind: Crew, metadata: {namespace: shop, name: web}}`
	settings = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings}}`
)

// fleetOf has the clusters east and west, and what crews refer to.
func fleetOf(t *testing.T, deps func(kinds.Object) ([]kinds.Dependency, error), templates ...string) plan.FleetInput {
	t.Helper()
	in := plan.FleetInput{
		Interpreter: interpreter.New(kinds.Table{schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "Crew"}: {Dependencies: deps}}),
		Now:         time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	for _, name := range []string{"east", "west"} {
		c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}, {Kind: "Secret"}}},
			{GroupVersion: "storage.k8s.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "StorageClass"}}},
			{GroupVersion: "x.io/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Crew"}}},
		}
		in.Clusters = append(in.Clusters, c)
	}
	for _, text := range templates {
		in.Templates = append(in.Templates, object(t, text))
	}
	return in
}

// refersTo is the rule of crews that refer to these.
func refersTo(deps ...kinds.Dependency) func(kinds.Object) ([]kinds.Dependency, error) {
	return func(kinds.Object) ([]kinds.Dependency, error) { return deps, nil }
}

func settingsRef() kinds.Dependency {
	return kinds.Dependency{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
}

// carrier carries all of a kind to a cluster, and crews with what they refer to.
func carrier(apiVersion, kind, cluster string, change ...func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: strings.ToLower(kind), Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "p-" + kind},
	}}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind}}
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}
	p.Spec.PropagateDeps = kind == "Crew"
	for _, f := range change {
		f(&p.Spec)
	}
	return p
}

// administered is p for the whole cluster, with namespaces that it opens.
func administered(p *policyv1alpha1.PropagationPolicy, namespaces string) policyv1alpha1.Policy {
	return &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Annotations: map[string]string{dependency.NamespacesAnnotation: namespaces}}, Spec: p.Spec,
	}
}

// stored is the binding of a template of shop as it is today.
func stored(apiVersion, kind, name string, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: workv1alpha2.BindingName(kind, name), Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-" + name},
	}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: "shop", Name: name}
	for _, f := range change {
		f(b)
	}
	return b
}

// neededIn has others need the binding in east.
func neededIn(users ...string) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		for _, name := range users {
			b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{
				Namespace: "shop", Name: name, Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
			})
		}
	}
}

// placed has a binding run in east, as no policy says any more.
func placed(b *workv1alpha2.ResourceBinding) {
	b.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}}
	b.Spec.Clusters, b.Spec.PropagateDeps = []workv1alpha2.TargetCluster{{Name: "east"}}, true
}

// fate is what becomes of a template, in words: why, the clusters that hold it, what
// is wrong.
type fate struct {
	Why, NeededBy, Works, Err string
	Bound, Dropped            bool
}

func fateOf(p plan.TemplatePlan) fate {
	out := fate{Why: p.Why, Bound: p.Binding != nil, Dropped: p.Dropped}
	var by, works []string
	for _, ref := range p.NeededBy {
		by = append(by, ref.String())
	}
	for _, w := range p.Works {
		if w.Work != nil {
			works = append(works, w.Cluster)
		}
	}
	if p.Err != nil {
		out.Err = p.Err.Error()
	}
	out.NeededBy, out.Works = strings.Join(by, " "), strings.Join(works, " ")
	return out
}

func fates(in plan.FleetInput) map[string]fate {
	out := map[string]fate{}
	for _, p := range plan.Fleet(in) {
		out[p.Resource.Kind+" "+p.Resource.Name] = fateOf(p)
	}
	return out
}

const (
	byCrew = "PropagationPolicy shop/crew, selected all of its kind"
	noOne  = "no policy selects it"
)

// TestAlong: what a template refers to goes where the template goes, as far as that
// may reach.
func TestAlong(t *testing.T) {
	const pull = `{apiVersion: v1, kind: Secret, metadata: {namespace: bank, name: pull}}`
	const grant = `{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {namespace: bank, name: g}, spec: {from: [{group: x.io, kind: Crew, namespace: shop}], to: [{group: "", kind: Secret}]}}`
	pullRef := kinds.Dependency{APIVersion: "v1", Kind: "Secret", Namespace: "bank", Name: "pull"}
	crew, maps := carrier("x.io/v1", "Crew", "east"), carrier("v1", "ConfigMap", "west")
	later := carrier("x.io/v1", "Crew", "east")
	later.Name = "later"
	stays := dependency.Refused(selector.Resource{APIVersion: "x.io/v1", Kind: "Crew", Namespace: "shop", Name: "web"}, []kinds.Dependency{pullRef}).Error()
	attachedTo := ", goes along with shop/web-crew"
	cases := map[string]struct {
		deps      func(kinds.Object) ([]kinds.Dependency, error)
		templates []string
		policies  []policyv1alpha1.Policy
		want      map[string]fate
	}{
		"one that no policy carries goes where its user goes": {
			refersTo(settingsRef()), []string{webCrew, settings}, []policyv1alpha1.Policy{crew},
			map[string]fate{"Crew web": {Why: byCrew, Works: "east", Bound: true}, "ConfigMap settings": {Why: noOne + attachedTo, NeededBy: "shop/web-crew", Works: "east", Bound: true}},
		},
		"one that is carried goes there besides": {
			refersTo(settingsRef()), []string{settings, webCrew}, []policyv1alpha1.Policy{crew, maps},
			map[string]fate{"Crew web": {Why: byCrew, Works: "east", Bound: true}, "ConfigMap settings": {Why: "PropagationPolicy shop/configmap, selected all of its kind", NeededBy: "shop/web-crew", Works: "east west", Bound: true}},
		},
		"its user does not take it along": {
			refersTo(settingsRef()), []string{webCrew, settings},
			[]policyv1alpha1.Policy{carrier("x.io/v1", "Crew", "east", func(s *policyv1alpha1.PropagationSpec) { s.PropagateDeps = false })},
			map[string]fate{"Crew web": {Why: byCrew, Works: "east", Bound: true}, "ConfigMap settings": {Why: noOne}},
		},
		"its user goes nowhere": {
			refersTo(settingsRef()), []string{webCrew, settings}, nil, map[string]fate{"Crew web": {Why: noOne}, "ConfigMap settings": {Why: noOne}},
		},
		"one of another namespace stays": {
			refersTo(pullRef), []string{webCrew, pull}, []policyv1alpha1.Policy{crew},
			map[string]fate{"Crew web": {Why: byCrew, Works: "east", Bound: true, Err: stays}, "Secret pull": {Why: noOne}},
		},
		"unless that namespace grants it": {
			refersTo(pullRef), []string{webCrew, pull, grant}, []policyv1alpha1.Policy{crew},
			map[string]fate{
				"Crew web":    {Why: byCrew, Works: "east", Bound: true},
				"Secret pull": {Why: noOne + attachedTo, NeededBy: "shop/web-crew", Works: "east", Bound: true}, "ReferenceGrant g": {Why: noOne},
			},
		},
		"unless an administrator opens that namespace": {
			refersTo(pullRef), []string{webCrew, pull}, []policyv1alpha1.Policy{administered(crew, "bank"), administered(carrier("v1", "Pod", "east"), "")},
			map[string]fate{"Crew web": {Why: "ClusterPropagationPolicy crew, selected all of its kind", Works: "east", Bound: true}, "Secret pull": {Why: noOne + attachedTo, NeededBy: "shop/web-crew", Works: "east", Bound: true}},
		},
		"an administrator opens it for another policy": {
			refersTo(pullRef), []string{webCrew, pull}, []policyv1alpha1.Policy{administered(crew, ""), administered(later, "bank")},
			map[string]fate{"Crew web": {Why: "ClusterPropagationPolicy crew, selected all of its kind", Works: "east", Bound: true, Err: stays}, "Secret pull": {Why: noOne}},
		},
		"what makes no sense is told": {
			refersTo(kinds.Dependency{Kind: "ConfigMap"}, settingsRef()), []string{webCrew, settings}, []policyv1alpha1.Policy{crew},
			map[string]fate{
				"Crew web":           {Why: byCrew, Works: "east", Bound: true, Err: "dependency 1: has no apiVersion or no kind"},
				"ConfigMap settings": {Why: noOne + attachedTo, NeededBy: "shop/web-crew", Works: "east", Bound: true},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetOf(t, tc.deps, tc.templates...)
			in.Policies = tc.policies
			if diff := cmp.Diff(tc.want, fates(in)); diff != "" {
				t.Errorf("templates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAlongKeeps: what goes along today does so while it is not known to be needed no
// more.
func TestAlongKeeps(t *testing.T) {
	failing := func(err error) func(kinds.Object) ([]kinds.Dependency, error) {
		return func(kinds.Object) ([]kinds.Dependency, error) { return nil, err }
	}
	attached := func(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		return stored("v1", "ConfigMap", "settings", append([]func(*workv1alpha2.ResourceBinding){neededIn("web-crew")}, change...)...)
	}
	crewToday := stored("x.io/v1", "Crew", "web", placed)
	along := fate{Why: noOne + ", goes along with shop/web-crew", NeededBy: "shop/web-crew", Works: "east", Bound: true}
	claimed := attached(func(b *workv1alpha2.ResourceBinding) {
		placed(b)
		propagation.ClaimOf(carrier("v1", "ConfigMap", "west")).Set(b)
	})
	cases := map[string]struct {
		deps    func(kinds.Object) ([]kinds.Dependency, error)
		crew    bool // there is one, and a policy for it
		binding *workv1alpha2.ResourceBinding
		whole   bool
		want    fate // of the settings
		err     string
	}{
		"its user is not among the templates":             {binding: attached(), want: along},
		"its user is known to be gone":                    {binding: attached(), whole: true, want: fate{Why: noOne, Dropped: true}},
		"its user refers to it no more":                   {deps: refersTo(), crew: true, binding: attached(), want: fate{Why: noOne, Dropped: true}},
		"its user cannot be read":                         {deps: failing(errors.New("no idea")), crew: true, binding: attached(), want: along, err: "dependencies of Crew web: no idea"},
		"the answer is on its way":                        {deps: failing(&kinds.Pending{Of: "a hook"}), crew: true, binding: attached(), want: along},
		"its binding has no id yet":                       {deps: refersTo(settingsRef()), crew: true, binding: attached(func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }), want: fate{Why: along.Why, NeededBy: along.NeededBy, Bound: true, Err: plan.ErrNoPermanentID.Error()}},
		"its own policy went, and it is needed":           {deps: refersTo(settingsRef()), crew: true, binding: claimed, want: along},
		"its own policy went, and it is needed no more":   {deps: refersTo(), crew: true, binding: claimed, want: fate{Why: noOne, Bound: true}},
		"nobody needs it, and nobody ever did":            {binding: stored("v1", "ConfigMap", "settings", placed), want: fate{Why: noOne}},
		"it is needed by more than anybody wants to read": {binding: attached(neededIn("a", "b", "c")), want: fate{Why: noOne + ", goes along with shop/a, shop/b, shop/c, others", NeededBy: "shop/a shop/b shop/c shop/web-crew", Works: "east", Bound: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := fleetOf(t, tc.deps, settings)
			in.Whole, in.Bindings = tc.whole, []workv1alpha2.Binding{tc.binding}
			want := map[string]fate{"ConfigMap settings": tc.want}
			if tc.crew {
				in.Templates = append(in.Templates, object(t, webCrew))
				in.Policies, in.Bindings = []policyv1alpha1.Policy{carrier("x.io/v1", "Crew", "east")}, append(in.Bindings, crewToday)
				want["Crew web"] = fate{Why: byCrew, Works: "east", Bound: true, Err: tc.err}
			}
			if diff := cmp.Diff(want, fates(in)); diff != "" {
				t.Errorf("templates (-want +got):\n%s", diff)
			}
		})
	}
}
