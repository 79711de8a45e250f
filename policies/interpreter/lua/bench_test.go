package lua_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

var deploymentScripts = configv1alpha1.CustomizationRules{
	HealthInterpretation: code(`
function InterpretHealth(observedObj)
  if observedObj.status.observedGeneration ~= observedObj.metadata.generation then
    return false
  end
  if observedObj.spec.replicas ~= nil and observedObj.status.updatedReplicas < observedObj.spec.replicas then
    return false
  end
  return observedObj.status.availableReplicas >= observedObj.status.updatedReplicas
end`),
	ReplicaResource: code(`
local kube = require("kube")
function GetReplicas(obj)
  local replica = obj.spec.replicas
  local requirement = kube.accuratePodRequirements(obj.spec.template)
  return replica, requirement
end`),
	ReplicaRevision: code(`
function ReviseReplica(obj, desiredReplica)
  obj.spec.replicas = desiredReplica
  return obj
end`),
	Retention: code(`
function Retain(desiredObj, observedObj)
  desiredObj.spec.replicas = observedObj.spec.replicas
  return desiredObj
end`),
	StatusReflection: code(`
function ReflectStatus(observedObj)
  local status = {}
  if observedObj == nil or observedObj.status == nil then
    return status
  end
  status.replicas = observedObj.status.replicas
  status.updatedReplicas = observedObj.status.updatedReplicas
  status.readyReplicas = observedObj.status.readyReplicas
  status.availableReplicas = observedObj.status.availableReplicas
  status.observedGeneration = observedObj.status.observedGeneration
  status.conditions = observedObj.status.conditions
  return status
end`),
	StatusAggregation: code(`
function AggregateStatus(desiredObj, statusItems)
  if desiredObj.status == nil then
    desiredObj.status = {}
  end
  local replicas, ready, updated, available = 0, 0, 0, 0
  for i = 1, #statusItems do
    local status = statusItems[i].status
    if status ~= nil then
      replicas = replicas + (status.replicas or 0)
      ready = ready + (status.readyReplicas or 0)
      updated = updated + (status.updatedReplicas or 0)
      available = available + (status.availableReplicas or 0)
    end
  end
  desiredObj.status.replicas = replicas
  desiredObj.status.readyReplicas = ready
  desiredObj.status.updatedReplicas = updated
  desiredObj.status.availableReplicas = available
  return desiredObj
end`),
	DependencyInterpretation: code(`
local kube = require("kube")
function GetDependencies(desiredObj)
  return kube.getPodDependencies(desiredObj.spec.template, desiredObj.metadata.namespace)
end`),
}

func BenchmarkLua(b *testing.B) {
	r, problems := lua.New(lua.Options{Now: clock}).Rules(deploymentScripts)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	obj := object(b, webDeployment)
	status := []byte(`{"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"observedGeneration":7}`)
	items := []workv1alpha2.AggregatedStatusItem{}
	for _, c := range []string{"m1", "m2", "m3"} {
		items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: c, Status: &runtime.RawExtension{Raw: status}, Applied: true})
	}
	for name, f := range map[string]func() error{
		"health":       func() error { _, err := r.Health(obj); return err },
		"replicas":     func() error { _, _, err := r.Replicas(obj); return err },
		"revise":       func() error { _, err := r.Revise(obj, 7); return err },
		"retain":       func() error { _, err := r.Retain(obj, obj); return err },
		"reflect":      func() error { _, err := r.Reflect(obj); return err },
		"aggregate":    func() error { _, err := r.Aggregate(obj, items); return err },
		"dependencies": func() error { _, err := r.Dependencies(obj); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCostly measures how long each of the costly scripts runs until a
// budget stops it.
func BenchmarkCostly(b *testing.B) {
	m := lua.New(lua.Options{})
	obj := object(b, webDeployment)
	for name, body := range costly {
		b.Run(name, func(b *testing.B) {
			run := health(b, m, "function InterpretHealth(obj)\nleaked = 1 "+body+" end")
			for b.Loop() {
				if _, err := run(obj); err == nil {
					b.Fatal("not stopped")
				}
			}
		})
	}
}
