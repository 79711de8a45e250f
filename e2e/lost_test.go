package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// losses are the ways in which a cluster is lost, and how it comes back.
var losses = []struct {
	name       string
	lose, find func(member *localfleet.Process, link *localfleet.Link) error
	// hubDies says that the control plane is killed between the decisions to move and what comes of them.
	hubDies bool
}{
	{"killed, and the control plane after it", func(m *localfleet.Process, _ *localfleet.Link) error { return m.Kill() },
		func(m *localfleet.Process, _ *localfleet.Link) error { return m.Start() }, true},
	{"frozen", func(m *localfleet.Process, _ *localfleet.Link) error { return m.Pause() },
		func(m *localfleet.Process, _ *localfleet.Link) error { return m.Resume() }, false},
	{"cut off", func(_ *localfleet.Process, l *localfleet.Link) error { l.Cut(); return nil },
		func(_ *localfleet.Process, l *localfleet.Link) error { l.Mend(); return nil }, false},
}

// TestABoutiqueLosesACluster loses the cluster that half of a real application runs in, in each of the ways. Everything
// runs elsewhere, the commit reports it, and what comes back with the cluster goes, once.
func TestABoutiqueLosesACluster(t *testing.T) {
	files := testdata(t, "online-boutique/kustomize")
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: fleet.Folder(t), Members: []string{"east", "west"}, HubArgs: []string{
		localfleet.LoopbackSources, "--failover=on", "--failover-tolerance=1s", "--cluster-status-update-frequency=1s",
		"--cluster-failure-threshold=2s", "--cluster-success-threshold=2s", "--cluster-monitor-grace-period=5s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	link, err := f.JoinByLink(t.Context(), "east")
	if err == nil {
		t.Cleanup(func() { _ = link.Close() })
		err = f.Join(t.Context(), "west")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := of(f)
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

	for i, loss := range losses {
		if i > 0 {
			w.bringHome(t, namespace)
			repo.reported(t, commit, "success 2/2 clusters ready")
		}
		if !t.Run(loss.name, func(t *testing.T) {
			w.loseHome(t, namespace, func() error { return loss.lose(w.Members["east"], link) }, loss.hubDies)
			repo.reported(t, commit, "pending 1/2 clusters ready: east ")
			w.findHome(t, namespace, func() error { return loss.find(w.Members["east"], link) })
			repo.reported(t, commit, "success 2/2 clusters ready")
		}) {
			return
		}
	}
}

// loseHome loses the cluster east, and waits until all of the boutique runs in the west.
func (w *world) loseHome(t *testing.T, namespace string, lose func() error, hubDies bool) {
	t.Helper()
	moves := w.watchMoves(t, namespace)
	if err := lose(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-moves:
	case <-time.After(slack * time.Minute):
		t.Fatal("nothing moves")
	}
	if hubDies {
		w.crash(t)
	}
	w.Eventually(t, 2*time.Minute, "all of it runs in the west", func(ctx context.Context) error {
		return w.runs(ctx, "west", namespace, map[string]types.UID{}, 12)
	})
}

// findHome has the cluster east come back, and waits until nothing of the boutique is there. What runs in the west
// must not be touched.
func (w *world) findHome(t *testing.T, namespace string, find func() error) {
	t.Helper()
	before, now := map[string]types.UID{}, map[string]types.UID{}
	if err := w.runs(t.Context(), "west", namespace, before, 12); err != nil {
		t.Fatal(err)
	}
	if err := find(); err != nil {
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
	if err := w.runs(t.Context(), "west", namespace, now, 12); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, now); diff != "" {
		t.Errorf("what runs in the west was made anew (-before +after):\n%s", diff)
	}
	w.noneMoves(t, namespace)
}

// bringHome has what was moved off the cluster east run there again, and nowhere else.
func (w *world) bringHome(t *testing.T, namespace string) {
	t.Helper()
	args := []string{"rebalance", "-n", namespace}
	for _, name := range homeless {
		args = append(args, "deployment/"+name)
	}
	w.Flotilla(t, args...)
	w.Eventually(t, 2*time.Minute, "half of it runs in the east", func(ctx context.Context) error {
		return errors.Join(
			w.runs(ctx, "east", namespace, map[string]types.UID{}, len(homeless)),
			w.runs(ctx, "west", namespace, map[string]types.UID{}, 12-len(homeless)),
		)
	})
	w.noneMoves(t, namespace)
}

// noneMoves waits until nothing of a namespace is on its way.
func (w *world) noneMoves(t *testing.T, namespace string) {
	t.Helper()
	w.Eventually(t, time.Minute, "no move is left half", func(ctx context.Context) error {
		moving, err := w.moving(ctx, namespace)
		if len(moving) > 0 {
			err = errors.Join(err, fmt.Errorf("%v", moving))
		}
		return err
	})
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
