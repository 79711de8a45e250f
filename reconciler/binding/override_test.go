package binding_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// looks returns how many passes over bindings there were.
func reads(f *fleet) int {
	f.Helper()
	families, err := metrics.Registry.Gather()
	f.check(err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == "binding" {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return int(total)
}

// configMap returns one of many.
func (f *fleet) configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: fmt.Sprint("c-", i), Labels: map[string]string{"number": fmt.Sprint(i)}},
		Data:       map[string]string{"key": "plain"},
	}
}

// values returns what clusters should have under "key" of a ConfigMap.
func (f *fleet) values(i int) map[string]string {
	f.Helper()
	out := map[string]string{}
	for cluster, w := range f.works("ConfigMap", fmt.Sprint("c-", i)) {
		var manifest corev1.ConfigMap
		f.check(json.Unmarshal(w.Spec.Workload.Manifests[0].Raw, &manifest))
		out[cluster] = manifest.Data["key"]
	}
	return out
}

// TestOverrideAmongMany: of 1,000 bindings, an edit of an override starts passes over the
// three that it selects, and writes to the clusters that it selects.
func TestOverrideAmongMany(t *testing.T) {
	many := 1000
	if testing.Short() {
		many = 50
	}
	f := newFleet(t, "a", "b")
	f.create(f.policy("all", policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}))
	var group errgroup.Group
	group.SetLimit(16)
	for i := range many {
		group.Go(func() error { return f.env.Hub.Create(f.Context(), f.configMap(i)) })
	}
	f.check(group.Wait())
	eventually(f, "works", 2*many, func() int {
		var works workv1alpha1.WorkList
		f.check(f.env.Hub.List(f.Context(), &works))
		n := 0
		for i := range works.Items {
			if works.Items[i].DeletionTimestamp == nil {
				n++
			}
		}
		return n
	})
	f.awaitIdle()

	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "three"},
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "number", Operator: metav1.LabelSelectorOpIn, Values: []string{"7", "8", "9"}}},
			}}},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}},
				Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
					Path: "/data/key", Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte(`"a"`)},
				}}},
			}},
		},
	}
	step := func(what string, act func(), seven map[string]string, wantLooks int, wantWrites map[string]int) {
		t.Helper()
		before, begin := reads(f), time.Now()
		act()
		eventually(f, what, seven, func() map[string]string { return f.values(7) })
		took := time.Since(begin)
		f.wrote(what, wantWrites)
		// An own write that the watch reports before its answer comes causes
		// one more pass.
		if got := reads(f) - before; got < wantLooks || got > wantLooks+wantWrites["PATCH works"] {
			t.Errorf("%s: looked at %d bindings, want %d", what, got, wantLooks)
		}
		t.Logf("%s: %s", what, took.Round(time.Millisecond))
	}
	step("an override of three on one cluster", func() { f.check(f.env.Hub.Create(f.Context(), override)) },
		map[string]string{"a": "a", "b": "plain"}, 3, map[string]int{"PATCH works": 3})
	step("the other cluster instead", func() {
		edit(f, override, func(o *policyv1alpha1.OverridePolicy) {
			o.Spec.OverrideRules[0].TargetCluster.ClusterNames = []string{f.cluster("b")}
		})
	}, map[string]string{"a": "plain", "b": "a"}, 3, map[string]int{"PATCH works": 6})
	step("one of the three no more, and another name", func() {
		edit(f, override, func(o *policyv1alpha1.OverridePolicy) {
			o.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{
				{APIVersion: "v1", Kind: "ConfigMap", Name: "c-7"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "c-8"}, {APIVersion: "v1", Kind: "ConfigMap", Name: "c-10"},
			}
		})
	}, map[string]string{"a": "plain", "b": "a"}, 4, map[string]int{"PATCH works": 2})
	step("a label on the override", func() {
		edit(f, override, func(o *policyv1alpha1.OverridePolicy) { o.Labels = map[string]string{"x": "y"} })
	}, map[string]string{"a": "plain", "b": "a"}, 0, map[string]int{})
	wide := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns + "-nobody"},
		Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"nobody"}},
			Overriders:    override.Spec.OverrideRules[0].Overriders,
		}}},
	}
	step("an override of everything on a cluster that nothing runs on", func() { f.check(f.env.Hub.Create(f.Context(), wide)) },
		map[string]string{"a": "plain", "b": "a"}, 0, map[string]int{})
	f.check(f.env.Hub.Delete(f.Context(), wide))
	step("the override is deleted", func() { f.check(f.env.Hub.Delete(f.Context(), override)) },
		map[string]string{"a": "plain", "b": "plain"}, 3, map[string]int{"PATCH works": 3})
}

// TestBadOverride: an override that does not fit leaves what it selects as it is,
// and affects nothing else; everything goes on once it is corrected.
func TestBadOverride(t *testing.T) {
	f := newFleet(t, "a", "b")
	web, api := f.deployment("web"), f.deployment("api")
	f.create(f.policy("all", deployments("")), web, api)
	plain := map[string]string{"a": "2x1", "b": "2x1"}
	for _, name := range []string{"web", "api"} {
		eventually(f, "images of "+name, plain, func() map[string]string { return f.images(name) })
	}
	f.awaitIdle()

	bad := f.imageTag("bad", "web", "3", "a")
	good := bad.Spec.OverrideRules[0].Overriders
	unfit := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/missing/field", Operator: policyv1alpha1.OverriderOpRemove}}}
	bad.Spec.OverrideRules[0].Overriders = unfit
	f.create(bad)
	failed := map[string]int{"Deployment ApplyOverridePolicyFailed": 1, "ResourceBinding ApplyOverridePolicyFailed": 1}
	failures := func() map[string]int {
		out := f.events.reasons()
		delete(out, "Deployment ApplyPolicySucceed")
		delete(out, "Deployment ScheduleBindingSucceed")
		return out
	}
	eventually(f, "events", failed, failures)
	f.wrote("an override that does not fit", map[string]int{"PATCH works": 1})
	fault := func() string { return f.works("Deployment", "web")["a"].Annotations[propagation.FaultAnnotation] }
	if !strings.Contains(fault(), "/spec/missing/field") {
		t.Errorf("the Work says that %q is wrong", fault())
	}

	for _, d := range []*appsv1.Deployment{web, api} {
		edit(f, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "registry.example/web:2" })
	}
	eventually(f, "images of a template that it does not mean", map[string]string{"a": "2x2", "b": "2x2"}, func() map[string]string { return f.images("api") })
	eventually(f, "images of the template that it means", map[string]string{"a": "2x1", "b": "2x2"}, func() map[string]string { return f.images("web") })
	f.wrote("another image while one override does not fit", map[string]int{"PATCH resourcebindings": 2, "PATCH works": 3})
	if diff := cmp.Diff(failed, failures()); diff != "" {
		t.Errorf("events for a failure that goes on (-want +got):\n%s", diff)
	}

	edit(f, bad, func(o *policyv1alpha1.OverridePolicy) { o.Spec.OverrideRules[0].Overriders = good })
	eventually(f, "images once it is corrected", map[string]string{"a": "2x3", "b": "2x2"}, func() map[string]string { return f.images("web") })
	f.wrote("the override is corrected", map[string]int{"PATCH works": 1})
	if fault() != "" {
		t.Errorf("the Work still says that %q is wrong", fault())
	}
	if diff := cmp.Diff(failed, failures()); diff != "" {
		t.Errorf("events for a success (-want +got):\n%s", diff)
	}

	edit(f, bad, func(o *policyv1alpha1.OverridePolicy) { o.Spec.OverrideRules[0].Overriders = unfit })
	again := map[string]int{"Deployment ApplyOverridePolicyFailed": 2, "ResourceBinding ApplyOverridePolicyFailed": 2}
	eventually(f, "events when it fails again", again, failures)
	f.check(f.env.Hub.Delete(f.Context(), bad))
	eventually(f, "images without it", map[string]string{"a": "2x2", "b": "2x2"}, func() map[string]string { return f.images("web") })
	f.wrote("it fails again and is deleted", map[string]int{"PATCH works": 2})
}

// TestOverrideFirst: a Work is never written without the overrides that existed
// before its template, also after a restart.
func TestOverrideFirst(t *testing.T) {
	f := newFleet(t, "a")
	f.create(f.policy("all", deployments("")), f.imageTag("tag", "web", "9", "a"))
	f.awaitIdle()
	web := f.deployment("web")
	f.create(web)
	eventually(f, "images", map[string]string{"a": "2x9"}, func() map[string]string { return f.images("web") })
	f.awaitIdle()
	f.stop()
	edit(f, f.member("a"), func(c *clusterv1alpha1.Cluster) { c.Labels["tier"] = "gold" })
	f.start()
	f.wrote("a restart", map[string]int{})
	if w := f.works("Deployment", "web")["a"]; w.Generation != 1 {
		t.Errorf("the Work was written %d times", w.Generation)
	}
	f.check(f.env.Hub.DeleteAllOf(f.Context(), &policyv1alpha1.OverridePolicy{}, client.InNamespace(f.ns)))
}
