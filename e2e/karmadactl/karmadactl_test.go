package karmadactl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/karmadas"
)

const templates = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: north, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [north]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
`

const token = "abcdef.0123456789abcdef"

// world is a control plane with no member that it could reach.
type world struct {
	*testing.T
	*fleet.Fleet
	register *karmadas.Register
}

func start(t *testing.T) world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	f, err := fleet.Start(t.Context(), fleet.Options{Dir: fleet.Folder(t), HubArgs: []string{"--allow-karmadactl-register"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
	admin, err := f.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.ParseCertsPEM(admin.CAData)
	if err != nil {
		t.Fatal(err)
	}
	return world{t, f, &karmadas.Register{Endpoint: admin.Host, Token: token, CAHash: registration.CAHash(ca[0]), Cluster: "north"}}
}

// until waits for what a check says.
func (w world) until(what string, check func(ctx context.Context) error) {
	w.Helper()
	if err := fleet.Until(w.Context(), 100*time.Millisecond, fleet.Slack*30*time.Second, check); err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// agent registers the cluster, and starts its agent.
func (w world) agent() *karmadas.Agent {
	w.Helper()
	ctx := w.Context()
	if err := w.Client.Create(ctx, karmadas.TokenSecret(token)); err != nil {
		w.Fatal(err)
	}
	got := func(cfg *rest.Config, err error) *rest.Config {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return cfg
	}
	byToken := got(w.register.Discover(ctx))
	maker, err := client.New(got(w.register.Generator(ctx, byToken)), client.Options{Scheme: w.Client.Scheme()})
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.register.MakeRights(ctx, maker); err != nil {
		w.Fatal(err)
	}
	agent, err := karmadas.NewAgent(got(w.register.Agent(ctx, byToken)), "north", "id-of-north")
	if err != nil {
		w.Fatal(err)
	}
	w.until("the agent's rights", func(ctx context.Context) error {
		everywhere := agent.Get(ctx, client.ObjectKey{Name: "north"}, &clusterv1alpha1.Cluster{})
		inNamespace := agent.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: "north"}, &corev1.Secret{}) // is heard of apart
		for _, err := range []error{everywhere, inNamespace} {
			if apierrors.IsForbidden(err) {
				return err
			}
		}
		return nil
	})
	for _, step := range []func(context.Context) error{agent.Elect, agent.Start, agent.Beat, agent.Report} {
		if err := step(ctx); err != nil {
			w.Fatal(err)
		}
	}
	return agent
}

// TestAgentOfKarmada carries a template to a cluster of Karmada's, and its status back.
func TestAgentOfKarmada(t *testing.T) {
	w := start(t)
	agent := w.agent()
	if _, err := fleet.Run(t.Context(), []byte(templates), "flotilla", "kubectl", "apply", "-f", "-", "--kubeconfig", w.Hub.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.until("a Work", func(ctx context.Context) error {
		if err := agent.Beat(ctx); err != nil {
			return err
		}
		works := &workv1alpha1.WorkList{}
		if err := agent.List(ctx, works, client.InNamespace(agent.Space())); err != nil {
			return err
		}
		for i := range works.Items {
			work := &works.Items[i]
			if !strings.HasPrefix(work.Name, "web-") {
				continue
			}
			return agent.Apply(ctx, work, workv1alpha1.ManifestStatus{
				Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
				Status:     &runtime.RawExtension{Raw: []byte(`{"generation":1,"observedGeneration":1,"replicas":2,"readyReplicas":2,"availableReplicas":2,"updatedReplicas":2}`)},
				Health:     workv1alpha1.ResourceHealthy,
			})
		}
		return errors.New("there is no Work of the Deployment")
	})
	w.until("what the agent reports", func(ctx context.Context) error {
		template, binding := &appsv1.Deployment{}, &workv1alpha2.ResourceBinding{}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, template); err != nil {
			return err
		}
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, binding); err != nil {
			return err
		}
		type outcome struct {
			Ready   int32
			Applied bool
			Items   []string
		}
		got := outcome{Ready: template.Status.ReadyReplicas, Applied: meta.IsStatusConditionTrue(binding.Status.Conditions, "FullyApplied")}
		for _, item := range binding.Status.AggregatedStatus {
			got.Items = append(got.Items, fmt.Sprintf("%s %v %s", item.ClusterName, item.Applied, item.Health))
		}
		if diff := cmp.Diff(outcome{2, true, []string{"north true Healthy"}}, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	w.leaves(agent)
}

// leaves unregisters the cluster: its agent lets go of what it holds.
func (w world) leaves(agent *karmadas.Agent) {
	w.Helper()
	if err := w.Client.Delete(w.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "north"}}); err != nil {
		w.Fatal(err)
	}
	w.until("the cluster has left", func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := agent.List(ctx, works, client.InNamespace(agent.Space())); err == nil {
			for i := range works.Items {
				if !works.Items[i].DeletionTimestamp.IsZero() {
					_ = agent.LetGo(ctx, &works.Items[i]) // it is looked at again
				}
			}
		}
		err := w.Client.Get(ctx, client.ObjectKey{Name: "north"}, &clusterv1alpha1.Cluster{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}
