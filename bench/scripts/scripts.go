// Package scripts has customizations as users write them, to be timed.
//
// In goes a Deployment, out come operations on it; nothing is measured here.
package scripts

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

// asUsersWrite are customizations as they are written for a kind like
// Deployment.
func asUsersWrite() configv1alpha1.CustomizationRules {
	script := func(text string) *configv1alpha1.CustomizationScript {
		return &configv1alpha1.CustomizationScript{LuaScript: text}
	}
	return configv1alpha1.CustomizationRules{
		HealthInterpretation: script(`
function InterpretHealth(o)
  return o.status.observedGeneration == o.metadata.generation
    and o.status.updatedReplicas >= o.spec.replicas and o.status.availableReplicas >= o.status.updatedReplicas
end`),
		ReplicaResource: script(`
local kube = require("kube")
function GetReplicas(o)
  return o.spec.replicas, kube.accuratePodRequirements(o.spec.template)
end`),
		ReplicaRevision: script(`
function ReviseReplica(o, n)
  o.spec.replicas = n
  return o
end`),
		Retention: script(`
function Retain(desired, observed)
  desired.spec.replicas = observed.spec.replicas
  return desired
end`),
		StatusReflection: script(`
function ReflectStatus(o)
  return { replicas = o.status.replicas, readyReplicas = o.status.readyReplicas, observedGeneration = o.status.observedGeneration }
end`),
		StatusAggregation: script(`
function AggregateStatus(o, items)
  local replicas, ready = 0, 0
  for i = 1, #items do
    local status = items[i].status or {}
    replicas, ready = replicas + (status.replicas or 0), ready + (status.readyReplicas or 0)
  end
  o.status = { replicas = replicas, readyReplicas = ready }
  return o
end`),
		DependencyInterpretation: script(`
local kube = require("kube")
function GetDependencies(o)
  return kube.getPodDependencies(o.spec.template, o.metadata.namespace)
end`),
	}
}

// ordinary makes of d what clusters hold, without managed fields.
func ordinary(d *appsv1.Deployment) (*unstructured.Unstructured, error) {
	d.Generation = 7
	replicas := *d.Spec.Replicas
	container := &d.Spec.Template.Spec.Containers[0]
	container.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	for i := range 6 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: "some value of some length"})
	}
	container.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
	container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")}
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}}}
	d.Status.ObservedGeneration, d.Status.Replicas = 7, replicas
	d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = replicas, replicas, replicas
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return nil, fmt.Errorf("make the object: %w", err)
	}
	obj := &unstructured.Unstructured{Object: fields}
	obj.SetAPIVersion("apps/v1")
	obj.SetKind("Deployment")
	return obj, nil
}

// Operations returns each operation of the customizations on d, which is changed
// to look as in a cluster. Errors where a script does not compile.
func Operations(d *appsv1.Deployment) (map[string]func() error, error) {
	rules, problems := lua.New(lua.Options{}).Rules(asUsersWrite())
	if len(problems) > 0 {
		return nil, fmt.Errorf("compile the scripts: %v", problems)
	}
	obj, err := ordinary(d)
	if err != nil {
		return nil, err
	}
	var items []workv1alpha2.AggregatedStatusItem
	for _, cluster := range []string{"eu", "us", "ap"} {
		items = append(items, workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster, Applied: true, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":3,"readyReplicas":3,"observedGeneration":7}`)},
		})
	}
	return map[string]func() error{
		"health":       func() error { _, err := rules.Health(obj); return err },
		"replicas":     func() error { _, _, err := rules.Replicas(obj); return err },
		"revise":       func() error { _, err := rules.Revise(obj, 7); return err },
		"retain":       func() error { _, err := rules.Retain(obj, obj); return err },
		"reflect":      func() error { _, err := rules.Reflect(obj); return err },
		"aggregate":    func() error { _, err := rules.Aggregate(obj, items); return err },
		"dependencies": func() error { _, err := rules.Dependencies(obj); return err },
	}, nil
}
