// Package reviews measures how long it takes to say what a change does to a fleet, in memory.
//
// Out come the seconds for a fleet that is planned twice and compared, of which every template changes; those for a
// change of a few templates where the plan of before is kept; and the memory of all of it.
package reviews

import (
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/bench/clusters"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Sizes of the fleet, of a small one, and of a change.
const (
	templates, members           = 1000, 100
	fewTemplates, fewMembers     = 50, 10
	touched                      = 5
	goal, smallGoal, touchedGoal = 20, 1, 2 // seconds
	goalMiB                      = 1024
)

// Measure compares fleets before and after a change.
func Measure(r *results.Report) error {
	in := fleet(fewTemplates, fewMembers)
	began := time.Now()
	base := comparison.Plan(in)
	if err := compared(base, comparison.Plan(base.Then(changed(in, fewTemplates))), fewTemplates); err != nil {
		return err
	}
	r.AtMost("review", fmt.Sprintf("%d templates in %d clusters planned and compared, all changed", fewTemplates, fewMembers), time.Since(began).Seconds(), "s", smallGoal)

	in = fleet(templates, members)
	runtime.GC()
	began = time.Now()
	base = comparison.Plan(in)
	planned := time.Since(began)
	head := comparison.Plan(base.Then(changed(in, templates)))
	both := time.Since(began)
	if err := compared(base, head, templates); err != nil {
		return err
	}
	r.AtMost("review", fmt.Sprintf("%d templates in %d clusters planned and compared, all changed", templates, members), time.Since(began).Seconds(), "s", goal)
	r.Note("review", "of that: planned once", planned.Seconds(), "s")
	r.Note("review", "of that: compared", (time.Since(began) - both).Seconds(), "s")
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.AtMost("review", "memory of both plans", float64(memory.HeapAlloc)/(1<<20), "MiB", goalMiB)
	runtime.KeepAlive(head)

	next := base.Then(changed(in, touched))
	next.Kept = plan.Keep(base.Fleet, base.Plans)
	began = time.Now()
	if err := compared(base, comparison.Plan(next), touched); err != nil {
		return err
	}
	r.AtMost("review", fmt.Sprintf("%d of the %d changed, the plan of before kept", touched, templates), time.Since(began).Seconds(), "s", touchedGoal)
	return nil
}

// compared compares, and returns an error unless as many objects change.
func compared(base, head comparison.Side, objects int) error {
	if c := comparison.Compare(comparison.Input{Base: base, Head: head}); c.Summary.Objects != objects {
		return fmt.Errorf("%d objects differ, %d were changed", c.Summary.Objects, objects)
	}
	return nil
}

// fleet returns Deployments that one policy carries everywhere, with a registry that differs from region to region.
func fleet(templates, members int) plan.FleetInput {
	in := plan.FleetInput{Clusters: clusters.Many(members), Interpreter: interpreter.Native(), Skip: propagation.DefaultSkipRules(), Now: time.Now(), Whole: true}
	for i := range templates {
		in.Templates = append(in.Templates, deployment(i, "1.28"))
	}
	p := &policyv1alpha1.PropagationPolicy{}
	p.Namespace, p.Name = "shop", "everywhere"
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	p.Spec.Placement.ClusterTolerations = append(p.Spec.Placement.ClusterTolerations, tolerant())
	in.Policies = append(in.Policies, p)
	for _, region := range clusters.Regions {
		o := &policyv1alpha1.OverridePolicy{}
		o.Namespace, o.Name = "shop", region
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{LabelSelector: selecting(region)},
			Overriders:    policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Component: "Registry", Operator: "replace", Value: region + ".example.com"}}},
		}}
		in.Overrides = append(in.Overrides, o)
	}
	return in
}

// changed returns the fleet with another image in the first of its templates.
func changed(in plan.FleetInput, n int) plan.FleetInput {
	in.Templates = append([]*unstructured.Unstructured{}, in.Templates...)
	for i := range n {
		in.Templates[i] = deployment(i, "1.29")
	}
	return in
}

func deployment(n int, tag string) *unstructured.Unstructured {
	name := fmt.Sprintf("app-%04d", n)
	env := make([]any, 12)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("SETTING_%d", i), "value": fmt.Sprintf("the value of %d", i)}
	}
	labels := map[string]any{"app": name}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": name, "labels": labels},
		"spec": map[string]any{
			"replicas": int64(3), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "nginx:" + tag, "env": env, "ports": []any{map[string]any{"containerPort": int64(80)}},
					"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}},
				}}},
			},
		},
	}}
}

// tolerant lets templates into clusters with any taint.
func tolerant() corev1.Toleration { return corev1.Toleration{Operator: corev1.TolerationOpExists} }

func selecting(region string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"topology.kubernetes.io/region": region}}
}
