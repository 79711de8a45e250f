package comparison_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// sameWorks returns an error unless two plans are for the same Works.
func sameWorks(a, b []plan.TemplatePlan) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d and %d templates", len(a), len(b))
	}
	for i := range a {
		if !slices.EqualFunc(a[i].Works, b[i].Works, func(x, y plan.WorkPlan) bool {
			return x.Cluster == y.Cluster && fmt.Sprint(x.Err) == fmt.Sprint(y.Err) && reflect.DeepEqual(x.Work, y.Work) && reflect.DeepEqual(x.Applied, y.Applied)
		}) {
			return fmt.Errorf("the Works of %v differ:\n%v\n%v", a[i].Resource, a[i].Works, b[i].Works)
		}
	}
	return nil
}

// invented returns documents of a random fleet.
func invented(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	clusters := []string{"a", "b", "c", "d", "e"}[:2+r.IntN(4)]
	out := "clusters: " + strings.Join(clusters, " ") + "\n---\n"
	for i := range 1 + r.IntN(4) {
		doc := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: map-%d}, data: {a: %s, b: %s}}\n---\n", i, pick("x", "y", "''"), pick("x", "y"))
		out += by(pick("one", "two"), doc)
	}
	for i := range r.IntN(3) {
		out += fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web-%d}, spec: {replicas: %d, template: {spec: {containers: [{name: web, image: 'nginx:%d', args: [%s]}]}}}}\n---\n", i, r.IntN(5), r.IntN(2), pick("", "x", "x, y"))
	}
	placement := func() string {
		return pick("{}", "{clusterAffinity: {clusterNames: [a, b]}}", "{clusterAffinity: {clusterNames: [c]}}", "{clusterAffinity: {exclude: [a]}}",
			"{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [a]}, weight: 2}, {targetCluster: {clusterNames: [b]}, weight: 1}]}}}")
	}
	for _, kind := range []string{"v1, kind: ConfigMap", "apps/v1, kind: Deployment"} {
		if r.IntN(6) > 0 {
			out += fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {namespace: shop, name: p-%s}, spec: {resourceSelectors: [{apiVersion: %s}], placement: %s}}\n---\n", pick("x", "y")+kind[len(kind)-3:], kind, placement())
		}
	}
	if r.IntN(2) == 0 {
		out += fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {namespace: shop, name: o}, spec: {overrideRules: [{targetCluster: {clusterNames: [%s]}, overriders: {labelsOverrider: [{operator: add, value: {tier: %s}}]}}]}}\n---\n", pick("a", "b", "a, c"), pick("gold", "iron"))
	}
	return out
}

// holdings returns what clusters hold by plans, by cluster and object.
func holdings(t *testing.T, plans []plan.TemplatePlan) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, p := range plans {
		for _, w := range p.Works {
			if w.Work == nil {
				continue // it keeps what it has
			}
			obj := &unstructured.Unstructured{}
			if err := obj.UnmarshalJSON(w.Work.Spec.Workload.Manifests[0].Raw); err != nil {
				t.Fatal(err)
			}
			if out[w.Cluster] == nil {
				out[w.Cluster] = map[string]any{}
			}
			out[w.Cluster][obj.GetKind()+" "+obj.GetName()] = plan.Carried(obj).Object
		}
	}
	return out
}

// applied does to holdings what a Comparison says.
func applied(t *testing.T, to map[string]map[string]any, c comparison.Comparison) {
	t.Helper()
	for _, change := range c.Changes {
		name := change.Kind + " " + change.Name
		for _, cluster := range change.Clusters {
			if to[cluster] == nil {
				to[cluster] = map[string]any{}
			}
			switch change.Action {
			case comparison.Deleted:
				if to[cluster][name] == nil {
					t.Errorf("%s is deleted in %s, which does not have it", name, cluster)
				}
				if delete(to[cluster], name); len(to[cluster]) == 0 {
					delete(to, cluster)
				}
			case comparison.Created:
				if to[cluster][name] != nil {
					t.Errorf("%s is created in %s, which has it", name, cluster)
				}
				to[cluster][name] = change.After
			case comparison.Updated, comparison.Moved:
				to[cluster][name] = with(to[cluster][name], change.Fields)
			default:
				t.Errorf("%s is %s", name, change.Action)
			}
		}
	}
}

// with returns an object with fields changed.
func with(obj any, fields []change.Change) any {
	root := map[string]any{"": runtime.DeepCopyJSONValue(obj)}
	for _, f := range fields {
		var at any = root
		tokens := strings.Split(f.Path, "/")
		for i, token := range tokens {
			token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
			last := i == len(tokens)-1
			switch parent := at.(type) {
			case map[string]any:
				switch {
				case last && f.New == nil:
					delete(parent, token)
				case last:
					parent[token] = f.New
				}
				at = parent[token]
			case []any:
				n, err := strconv.Atoi(token)
				if err != nil {
					panic(err)
				}
				if last {
					parent[n] = f.New
				}
				at = parent[n]
			}
		}
	}
	return root[""]
}

// TestBaseAndDifferenceAreHead: what clusters hold, with what the Comparison says done to it, is what they will hold; a
// plan compared with itself says nothing; and the order of what comes in does not matter.
func TestBaseAndDifferenceAreHead(t *testing.T) {
	seen := map[comparison.Action]int{}
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 2))
		before, after := invented(r), invented(r)
		base := comparison.Plan(fleetOf(t, before))
		next := base.Then(fleetOf(t, after))
		head := comparison.Plan(next)
		next.Kept = plan.Keep(base.Fleet, base.Plans)
		if err := sameWorks(head.Plans, plan.Fleet(next)); err != nil {
			t.Fatalf("seed %d: with what was kept, the plan is another one: %v", seed, err)
		}
		c := comparison.Compare(comparison.Input{Base: base, Head: head})
		for _, change := range c.Changes {
			seen[change.Action]++
		}
		got, want := holdings(t, base.Plans), holdings(t, head.Plans)
		held(t, head.Plans, got, want)
		applied(t, got, c)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: base with the difference is not head (-head +base):\n%s\nbefore:\n%s\nafter:\n%s\n%s", seed, diff, before, after, told(c))
		}
		for _, side := range []comparison.Side{base, head} {
			if self := comparison.Compare(comparison.Input{Base: side, Head: side}); !self.Empty() || self.Summary != (comparison.Summary{}) {
				t.Fatalf("seed %d: a plan differs from itself:\n%s", seed, told(self))
			}
		}
		again := comparison.Plan(head.Then(fleetOf(t, after)))
		if self := comparison.Compare(comparison.Input{Base: head, Head: again}); len(self.Changes)+len(self.Placements)+len(self.Risks) > 0 {
			t.Fatalf("seed %d: the same fleet, planned again, differs:\n%s", seed, told(self))
		}
		for _, fleet := range []*plan.FleetInput{&base.Fleet, &head.Fleet} {
			slices.Reverse(fleet.Templates)
			slices.Reverse(fleet.Policies)
			slices.Reverse(fleet.Clusters)
		}
		if diff := cmp.Diff(c, comparison.Compare(comparison.Input{Base: comparison.Plan(base.Fleet), Head: comparison.Plan(head.Fleet)})); diff != "" {
			t.Fatalf("seed %d: the order matters:\n%s", seed, diff)
		}
	}
	for _, action := range []comparison.Action{comparison.Deleted, comparison.Created, comparison.Updated, comparison.Moved} {
		if seen[action] < 10 {
			t.Errorf("only %d objects are %s: the fleets do not try it", seen[action], action)
		}
	}
}

// held puts what stays, as nothing is decided about it, from what clusters held into what they will hold.
func held(t *testing.T, plans []plan.TemplatePlan, from, to map[string]map[string]any) {
	t.Helper()
	for _, p := range plans {
		if p.Dropped {
			continue
		}
		name := p.Resource.Kind + " " + p.Resource.Name
		for _, cluster := range slices.Sorted(maps.Keys(from)) {
			fails := slices.ContainsFunc(p.Works, func(w plan.WorkPlan) bool { return w.Cluster == cluster && w.Work == nil })
			if from[cluster][name] == nil || p.Works != nil && !fails {
				continue
			}
			if to[cluster] == nil {
				to[cluster] = map[string]any{}
			}
			to[cluster][name] = from[cluster][name]
		}
	}
}
