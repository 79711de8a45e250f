package interpreter_test

import (
	"testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

func TestHealth(t *testing.T) {
	const healthy, not = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	cases := map[string]struct {
		object string
		want   workv1alpha2.ResourceHealth
	}{
		"a deployment that is rolled out":    {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, healthy},
		"one whose latest spec is not seen":  {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}}`, not},
		"one that is not updated":            {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}}`, not},
		"one that is not available":          {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}}`, not},
		"a stateful set":                     {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`, healthy},
		"a replica set that lacks one":       {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, availableReplicas: 1}}`, not},
		"a daemon set everywhere":            {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}}`, healthy},
		"a daemon set that lacks a node":     {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}}`, not},
		"a service":                          {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, healthy},
		"a load balancer without an address": {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}]}}}`, not},
		"a load balancer with one":           {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: x}]}}}`, healthy},
		"an ingress without an address":      {`{apiVersion: networking.k8s.io/v1, kind: Ingress}`, not},
		"a claim that is bound":              {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, healthy},
		"a claim that is pending":            {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, not},
		"a pod that has succeeded":           {`{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}`, healthy},
		"a pod that runs and is ready":       {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, healthy},
		"a pod that runs":                    {`{apiVersion: v1, kind: Pod, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, not},
		"a pod without a status":             {`{apiVersion: v1, kind: Pod}`, not},
		"a budget that is met":               {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 2, desiredHealthy: 2}}`, healthy},
		"a budget that is not":               {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 1, desiredHealthy: 2}}`, not},
		"a config map":                       {`{apiVersion: v1, kind: ConfigMap}`, healthy},
		"a stateful set that lacks one":      {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`, not},
		"a kind without a rule that says it has failed, which nothing moves": {`{apiVersion: example.com/v1, kind: Thing, status: {phase: Failed, replicas: 0, conditions: [{type: Ready, status: "False"}, {type: Failed, status: "True"}]}}`, healthy},
		"a status of an unexpected shape":                                    {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 1}, status: [1]}`, not},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := interpreter.Native().Health(object(t, tc.object)); got != tc.want || err != nil {
				t.Errorf("health = %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}
