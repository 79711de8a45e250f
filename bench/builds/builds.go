// Package builds measures how fast small applications are built by kustomize and planned, in memory.
//
// Out come applications per second: built as the control plane builds a Kustomization, and planned to the
// manifests that clusters get of it, and how long each of the two takes.
package builds

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/bench/clusters"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/sources/build"
)

const (
	apps    = 500
	members = 10
)

// app is the folder of one: a base, and an overlay with a patch, an image and a generated ConfigMap.
func app(n int) map[string][]byte {
	name := fmt.Sprintf("app-%03d", n)
	text := func(s string) []byte { return []byte(s) }
	return map[string][]byte{
		"base/kustomization.yaml": text("resources: [web.yaml]\n"),
		"base/web.yaml": text(fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      containers: [{name: web, image: nginx:1.28, envFrom: [{configMapRef: {name: settings}}], resources: {requests: {cpu: 100m, memory: 64Mi}}}]
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec: {selector: {app: %[1]s}, ports: [{port: 80}]}
`, name)),
		"kustomization.yaml": text(`resources: [base, policies.yaml]
namespace: shop
images: [{name: nginx, newTag: "1.29"}]
configMapGenerator: [{name: settings, literals: [size=large, colour=blue]}]
patches: [{target: {kind: Deployment}, patch: "- {op: replace, path: /spec/replicas, value: 6}"}]
`),
		"policies.yaml": text(fmt.Sprintf(`apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %[1]s, namespace: shop}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}, {apiVersion: v1, kind: Service}]
  placement:
    clusterAffinity: {labelSelector: {matchLabels: {tier: gold}}}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: %[1]s, namespace: shop}
spec:
  overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: registry.example.com}]}}]
`, name)),
	}
}

// Measure builds and plans all applications, on all processors.
func Measure(ctx context.Context, r *results.Report) error {
	builder, fleet := build.New(build.Limits{}), clusters.Many(members)
	rules := interpreter.Native()
	var building, planning, works atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	began := time.Now()
	for n := range apps {
		group.Go(func() error {
			at := time.Now()
			objects, err := builder.Build(ctx, build.Input{Files: app(n)})
			if err != nil {
				return fmt.Errorf("build an application: %w", err)
			}
			built := time.Now()
			in, err := input(objects)
			if err != nil {
				return err
			}
			in.Clusters, in.Interpreter, in.Now, in.Skip = fleet, rules, built, propagation.DefaultSkipRules()
			for _, p := range plan.Fleet(in) {
				if p.Err != nil {
					return fmt.Errorf("plan %s: %w", p.Resource.Name, p.Err)
				}
				works.Add(int64(len(p.Works)))
			}
			building.Add(int64(built.Sub(at)))
			planning.Add(int64(time.Since(built)))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	if works.Load() == 0 {
		return fmt.Errorf("no cluster gets anything of %d applications", apps)
	}
	r.AtLeast("13", "kustomize applications built and planned", apps/took, "1/s", 100)
	r.Note("13", "of one application: built in", float64(building.Load())/apps/1e6, "ms")
	r.Note("13", "of one application: planned in", float64(planning.Load())/apps/1e6, "ms")
	r.Note("13", "manifests for clusters", float64(works.Load())/apps, "per application")
	return nil
}

// input divides what was built into templates, policies and overrides.
func input(objects []*unstructured.Unstructured) (in plan.FleetInput, err error) {
	for _, obj := range objects {
		switch obj.GetKind() {
		case policyv1alpha1.ResourceKindPropagationPolicy:
			p := &policyv1alpha1.PropagationPolicy{}
			err = kruntime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, p)
			in.Policies = append(in.Policies, p)
		case policyv1alpha1.ResourceKindOverridePolicy:
			o := &policyv1alpha1.OverridePolicy{}
			err = kruntime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, o)
			in.Overrides = append(in.Overrides, o)
		default:
			in.Templates = append(in.Templates, obj)
		}
		if err != nil {
			return in, fmt.Errorf("read %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return in, nil
}
