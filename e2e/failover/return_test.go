package failover

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// everywhere runs in two clusters, with its Service.
const everywhere = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}, {apiVersion: v1, kind: Service, name: web}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

// once is a Job that runs in east, or else in west.
const once = `
apiVersion: v1
kind: Namespace
metadata: {name: work}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: once, namespace: work}
spec:
  resourceSelectors: [{apiVersion: batch/v1, kind: Job, name: once}]
  placement: {clusterAffinities: [{affinityName: home, clusterNames: [east]}, {affinityName: away, clusterNames: [west]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: work}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: once, image: "busybox:1.37"}]}
`

// bound returns the clusters in which the binding of an object is placed, and those that it leaves.
func (w world) bound(ctx context.Context, namespace, kind, name string) (placed, leaves []string, err error) {
	b := &workv1alpha2.ResourceBinding{}
	err = w.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: workv1alpha2.BindingName(kind, name)}, b)
	for _, c := range b.Spec.Clusters {
		placed = append(placed, c.Name)
	}
	for _, task := range b.Spec.GracefulEvictionTasks {
		leaves = append(leaves, task.FromCluster)
	}
	return placed, leaves, err
}

// stands waits until the binding of an object is placed in these clusters, and leaves these. meanwhile is checked each time.
func (w world) stands(namespace, kind, name string, placed, leaves []string, meanwhile func()) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s %s/%s stands in %v and leaves %v", kind, namespace, name, placed, leaves), func(ctx context.Context) error {
		meanwhile()
		gotPlaced, gotLeaves, err := w.bound(ctx, namespace, kind, name)
		if diff := cmp.Diff([][]string{placed, leaves}, [][]string{gotPlaced, gotLeaves}); diff != "" {
			err = errors.Join(err, errors.New(diff))
		}
		return err
	})
}

// uids are those of the Deployment and the Service in a member.
func (w world) uids(cluster string) []types.UID {
	w.Helper()
	var out []types.UID
	w.eventually("the application is in "+cluster, func(ctx context.Context) error {
		out = nil
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
			if err := w.Clients[cluster].Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, obj); err != nil {
				return err
			}
			out = append(out, obj.GetUID())
		}
		return nil
	})
	return out
}

func nothing() {}

// TestAClusterThatIsBack: what runs everywhere goes on there as it was, and what it never got, and ran elsewhere meanwhile, is not made
// there.
func TestAClusterThatIsBack(t *testing.T) {
	w := newWorld(t, "--cluster-failure-threshold=10s") // time for the Job to be placed in a cluster that is gone
	w.Apply(t, everywhere)
	before := w.uids("east")
	w.uids("west")
	if err := w.Members["east"].Kill(); err != nil { // a frozen one would find the Job among its requests as it wakes
		t.Fatal(err)
	}
	w.Apply(t, once)
	w.stands("work", "Job", "once", []string{"east"}, nil, nothing)
	w.stands("work", "Job", "once", []string{"west"}, []string{"east"}, nothing)
	w.stands("shop", "Deployment", "web", []string{"west"}, []string{"east"}, nothing)
	w.eventually("the Job has run in west", func(ctx context.Context) error {
		job := &batchv1.Job{}
		err := w.Clients["west"].Get(ctx, types.NamespacedName{Namespace: "work", Name: "once"}, job)
		if err == nil && job.Status.Succeeded == 0 {
			err = errors.New("not yet")
		}
		return err
	})

	if err := w.Members["east"].Start(); err != nil {
		t.Fatal(err)
	}
	never := func() {
		t.Helper()
		err := w.Clients["east"].Get(t.Context(), types.NamespacedName{Namespace: "work", Name: "once"}, &batchv1.Job{})
		if err == nil {
			t.Fatalf("the Job is made in east, too:\n%s", w.Evidence(t))
		}
	}
	w.stands("work", "Job", "once", []string{"west"}, nil, never)
	w.stands("shop", "Deployment", "web", []string{"east", "west"}, nil, never)
	w.stands("shop", "Service", "web", []string{"east", "west"}, nil, never)
	if diff := cmp.Diff(before, w.uids("east")); diff != "" {
		t.Errorf("the application in east was made anew (-before +after):\n%s", diff)
	}
}

// athome runs in east, with what serves it, and in west otherwise, where it does not start.
const athome = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: web}
    - {apiVersion: v1, kind: Service, name: web}
    - {apiVersion: v1, kind: ConfigMap, name: web}
  placement: {clusterAffinities: [{affinityName: home, clusterNames: [east]}, {affinityName: away, clusterNames: [west]}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  overrideRules:
    - targetCluster: {clusterNames: [west]}
      overriders: {imageOverrider: [{component: Registry, operator: replace, value: fake}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {color: blue}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.example.com/nginx:1.29"}]}
`

// TestWhatServesACopyStaysWithIt: a Service and a ConfigMap leave a cluster that is drained with the Deployment that has them, and not
// before.
func TestWhatServesACopyStaysWithIt(t *testing.T) {
	w := newWorld(t)
	w.Apply(t, athome)
	w.stands("shop", "Deployment", "web", []string{"east"}, nil, nothing)
	before := w.uids("east")
	w.Flotilla(t, "taint", "clusters", "east", "maintenance=:NoExecute")
	for _, kind := range []string{"Deployment", "Service", "ConfigMap"} {
		w.stands("shop", kind, "web", []string{"west"}, []string{"east"}, nothing)
	}
	w.eventually("they are in west", func(ctx context.Context) error {
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}} {
			if err := w.Clients["west"].Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, obj); err != nil {
				return err
			}
		}
		return nil
	})
	if diff := cmp.Diff(before, w.uids("east")); diff != "" {
		t.Errorf("what runs in east, and its Service (-before +after):\n%s", diff)
	}
	if err := w.Clients["east"].Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("its ConfigMap: %v", err)
	}

	w.Kubectl(t, "", "delete", "overridepolicy", "-n", "shop", "web") // it starts in west
	for _, kind := range []string{"Deployment", "Service", "ConfigMap"} {
		w.stands("shop", kind, "web", []string{"west"}, nil, nothing)
	}
	w.eventually("nothing of it is left in east", func(ctx context.Context) error {
		for _, obj := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}} {
			err := w.Clients["east"].Get(ctx, types.NamespacedName{Namespace: "shop", Name: "web"}, obj)
			if !apierrors.IsNotFound(err) {
				return errors.Join(err, fmt.Errorf("%T is there", obj))
			}
		}
		return nil
	})
}
