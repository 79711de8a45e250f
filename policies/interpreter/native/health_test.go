package native_test

import (
	"testing"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// TestHealth checks that an object is healthy once its controller has observed the
// latest spec and all that the spec asks for is there.
func TestHealth(t *testing.T) {
	const yes, no = workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy
	deployment := func(status string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2}, status: ` + status + `}`
	}
	replicaSet := func(status string) string {
		return `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 2}, spec: {replicas: 2}, status: ` + status + `}`
	}
	controller := func(status string) string {
		return `{apiVersion: v1, kind: ReplicationController, metadata: {generation: 2}, spec: {replicas: 2}, status: ` + status + `}`
	}
	daemonSet := func(status string) string {
		return `{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 2}, status: ` + status + `}`
	}
	strategy := func(kind, strategy, status string) string {
		return `{apiVersion: apps/v1, kind: ` + kind + `, metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: ` + strategy + `}, status: ` + status + `}`
	}
	pod := func(status string) string { return `{apiVersion: v1, kind: Pod, status: ` + status + `}` }
	cases := map[string]struct {
		object string
		want   workv1alpha2.ResourceHealth
	}{
		"a deployment that is all there":                          {deployment(`{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 2}`), yes},
		"one whose spec was not seen":                             {deployment(`{observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}`), no},
		"one that is not up to date":                              {deployment(`{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}`), no},
		"one that is not available":                               {deployment(`{observedGeneration: 2, updatedReplicas: 2, availableReplicas: 1}`), no},
		"a stateful set that is all there":                        {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}, status: {updatedReplicas: 1, availableReplicas: 1}}`, yes},
		"a stateful set that says nothing":                        {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}`, no},
		"a stateful set that is updated from its partition on":    {strategy("StatefulSet", `{type: RollingUpdate, rollingUpdate: {partition: 2}}`, `{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 3}`), yes},
		"a stateful set that is not updated from there on":        {strategy("StatefulSet", `{rollingUpdate: {partition: 1}}`, `{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 3}`), no},
		"a stateful set with a partition that lacks a replica":    {strategy("StatefulSet", `{rollingUpdate: {partition: 2}}`, `{observedGeneration: 2, updatedReplicas: 1, availableReplicas: 2}`), no},
		"a stateful set with a partition above all its replicas":  {strategy("StatefulSet", `{rollingUpdate: {partition: 9}}`, `{observedGeneration: 2, availableReplicas: 3}`), yes},
		"a stateful set whose Pods people replace":                {strategy("StatefulSet", `{type: OnDelete}`, `{observedGeneration: 2, availableReplicas: 3}`), yes},
		"a stateful set whose Pods people replace, and lacks one": {strategy("StatefulSet", `{type: OnDelete}`, `{observedGeneration: 2, availableReplicas: 2}`), no},
		"a daemon set whose Pods people replace":                  {strategy("DaemonSet", `{type: OnDelete}`, `{observedGeneration: 2, desiredNumberScheduled: 3, numberAvailable: 3}`), yes},
		"a daemon set whose Pods people replace, and lacks one":   {strategy("DaemonSet", `{type: OnDelete}`, `{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 1, numberAvailable: 2}`), no},
		"a replica set that is all there":                         {replicaSet(`{observedGeneration: 2, availableReplicas: 2}`), yes},
		"a replica set that is not available":                     {replicaSet(`{observedGeneration: 2, availableReplicas: 1}`), no},
		"a replica set whose spec was not seen":                   {replicaSet(`{observedGeneration: 1, availableReplicas: 2}`), no},
		"a replication controller that is all there":              {controller(`{observedGeneration: 2, availableReplicas: 2}`), yes},
		"a replication controller that is not available":          {controller(`{observedGeneration: 2, availableReplicas: 1}`), no},
		"a daemon set that is all there":                          {daemonSet(`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 3}`), yes},
		"a daemon set for no node":                                {daemonSet(`{observedGeneration: 2}`), yes},
		"a daemon set that is not up to date":                     {daemonSet(`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 3}`), no},
		"a daemon set that is not available":                      {daemonSet(`{observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}`), no},
		"a daemon set whose spec was not seen":                    {daemonSet(`{observedGeneration: 1}`), no},
		"a pod that has done":                                     {pod(`{phase: Succeeded}`), yes},
		"a pod that runs and is ready":                            {pod(`{phase: Running, conditions: [{type: Ready, status: "True"}]}`), yes},
		"a pod that runs and is not ready":                        {pod(`{phase: Running, conditions: [{type: Ready, status: "False"}]}`), no},
		"a pod that waits":                                        {pod(`{phase: Pending, conditions: [{type: Ready, status: "True"}]}`), no},
		"a pod that has failed":                                   {pod(`{phase: Failed}`), no},
		"a pod that says nothing":                                 {pod(`null`), no},
		"a service needs no address":                              {`{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, yes},
		"a load balancer needs one":                               {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}`, no},
		"a load balancer has one":                                 {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}, {ip: 1.2.3.4}]}}}`, yes},
		"an ingress needs one":                                    {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{}]}}}`, no},
		"an ingress has a name":                                   {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{hostname: a.example}]}}}`, yes},
		"a claim that is bound":                                   {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, yes},
		"a claim that waits":                                      {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, no},
		"a budget of which enough are healthy":                    {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 2, desiredHealthy: 2}}`, yes},
		"a budget of which too few are":                           {`{apiVersion: policy/v1, kind: PodDisruptionBudget, status: {currentHealthy: 1, desiredHealthy: 2}}`, no},
		"a kind without a rule is healthy once it is there":       {`{apiVersion: v1, kind: Secret}`, yes},
		"a job has none: what has failed stays where it does":     {`{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True"}]}}`, yes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := interpreter.Native().Health(object(t, tc.object)); got != tc.want || err != nil {
				t.Errorf("health = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}
