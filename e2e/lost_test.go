package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// homeless are the Deployments of the boutique that run in east while it is there, and in west otherwise.
var homeless = []string{"adservice", "cartservice", "checkoutservice", "currencyservice", "emailservice", "frontend"}

// boutiqueAtHome runs half of the boutique in east, with a place in west, and all else in west.
const boutiqueAtHome = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: home}
spec:
  propagateDeps: true
  resourceSelectors:
%s
  placement:
    clusterAffinities: [{affinityName: home, clusterNames: [east]}, {affinityName: away, clusterNames: [west]}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: rest}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [west]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: everywhere}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Service}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
`

// TestABoutiqueLosesACluster kills the cluster that half of a real application runs in, and the control plane between
// the decisions to move and what comes of them. Everything runs elsewhere, the commit tells of it, and what comes
// back with the cluster goes, once.
func TestABoutiqueLosesACluster(t *testing.T) {
	files := testdata(t, "online-boutique/kustomize")
	w := of(fleet.Own(t, fleet.Options{Dir: fleet.Folder(t), Members: []string{"east", "west"}, HubArgs: []string{
		localfleet.LoopbackSources, "--failover=on", "--failover-tolerance=1s", "--cluster-status-update-frequency=1s",
		"--cluster-failure-threshold=2s", "--cluster-success-threshold=2s", "--cluster-monitor-grace-period=5s",
	}}))
	namespace := fleet.NameOf(t)
	repo := w.repository(t)
	repo.copy(files, "boutique")
	var selectors strings.Builder
	for _, name := range homeless {
		fmt.Fprintf(&selectors, "    - {apiVersion: apps/v1, kind: Deployment, name: %s}\n", name)
	}
	repo.write("app/policies.yaml", fmt.Sprintf(boutiqueAtHome, selectors.String()))
	repo.write("app/kustomization.yaml", fmt.Sprintf(boutique, namespace, " []"))
	commit := repo.push("half in the east")
	w.follow(t, repo.url, "", "")
	repo.reported(t, commit, "success 2/2 clusters ready")

	moves := w.watchMoves(t, namespace)
	if err := w.Members["east"].Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-moves:
	case <-time.After(slack * time.Minute):
		t.Fatal("nothing moves")
	}
	w.crash(t)
	running := map[string]types.UID{}
	w.Eventually(t, 2*time.Minute, "all of it runs in the west", func(ctx context.Context) error {
		return w.runs(ctx, "west", namespace, running, 12)
	})
	repo.reported(t, commit, "pending 1/2 clusters ready: east ")
	w.Eventually(t, time.Minute, "no move is left half", func(ctx context.Context) error {
		moving, err := w.moving(ctx, namespace)
		if len(moving) > 0 {
			err = errors.Join(err, fmt.Errorf("%v", moving))
		}
		return err
	})

	if err := w.Members["east"].Start(); err != nil {
		t.Fatal(err)
	}
	w.Eventually(t, 2*time.Minute, "what came back is gone", func(ctx context.Context) error {
		var list appsv1.DeploymentList
		if err := w.members["east"].List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d Deployments are there", len(list.Items))
		}
		return nil
	})
	now := map[string]types.UID{}
	if err := w.runs(t.Context(), "west", namespace, now, 12); err != nil {
		t.Error(err)
	}
	for name, uid := range running {
		if now[name] != uid {
			t.Errorf("Deployment %s was made anew", name)
		}
	}
	repo.reported(t, commit, "success 2/2 clusters ready")
}

// watchMoves returns what is closed once a template of a namespace is to be moved.
func (w *world) watchMoves(t *testing.T, namespace string) <-chan struct{} {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.Hub.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := hub.Watch(t.Context(), &workv1alpha2.ResourceBindingList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan struct{})
	go func() {
		defer events.Stop()
		for event := range events.ResultChan() {
			if b, ok := event.Object.(*workv1alpha2.ResourceBinding); ok && len(b.Spec.GracefulEvictionTasks) > 0 {
				close(out)
				return
			}
		}
	}()
	return out
}

// moving are the templates of a namespace that are on their way from one cluster to another.
func (w *world) moving(ctx context.Context, namespace string) ([]string, error) {
	var list workv1alpha2.ResourceBindingList
	if err := w.hub.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		if len(list.Items[i].Spec.GracefulEvictionTasks) > 0 {
			out = append(out, list.Items[i].Name)
		}
	}
	return out, nil
}

// runs expects so many Deployments in a cluster, all of them available, and notes who they are.
func (w *world) runs(ctx context.Context, cluster, namespace string, who map[string]types.UID, want int) error {
	var list appsv1.DeploymentList
	if err := w.members[cluster].List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	for _, d := range list.Items {
		if d.Status.AvailableReplicas == 0 || d.Status.AvailableReplicas != *d.Spec.Replicas {
			return fmt.Errorf("%s has %d of %d replicas", d.Name, d.Status.AvailableReplicas, *d.Spec.Replicas)
		}
		who[d.Name] = d.UID
	}
	if len(list.Items) != want {
		return fmt.Errorf("%d of %d Deployments are there", len(list.Items), want)
	}
	return nil
}
