package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
	"github.com/flotilla-io/flotilla/internal/localfleet"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// site is a member in pull mode: a cluster, its agent, and the link between the
// agent and the control plane.
type site struct {
	name   string
	member *localfleet.Process
	client client.Client
	link   *localfleet.Link
	agent  *localfleet.Process
}

// site starts a cluster and registers it by the line that the control plane prints.
// It leaves the fleet after the test.
func (w *world) site(t *testing.T, name string) *site {
	t.Helper()
	s := &site{name: name}
	var err error
	if s.member, err = w.NewMember(name); err != nil {
		t.Fatal(err)
	}
	s.start(t, s.member)
	if s.client, err = fleet.Client(s.member); err != nil {
		t.Fatal(err)
	}
	printed := strings.Fields(w.Flotilla(t, "token", "create", "--cluster-name", name, "--print-register-command=agent"))
	line := printed[max(0, slices.Index(printed, "flotilla-agent")):] // there is a warning before
	at := slices.Index(line, "--hub-endpoint") + 1
	if line[0] != "flotilla-agent" || at == 0 {
		t.Fatalf("the line to run is %q", printed)
	}
	if s.link, err = localfleet.NewLink(t.Context(), line[at]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.link.Close() })
	line[at] = s.link.Address()
	t.Cleanup(func() { w.forget(t, name) })
	s.agent, err = w.NewAgent(t.Context(), name, append(line[1:],
		"--kubeconfig", s.member.Kubeconfig, "--context", name, "--cluster-lease-duration", "2s",
		"--cluster-status-update-frequency", "1s", "--cluster-success-threshold", "1s", "--cert-rotation-checking-interval", "1s")...)
	if err != nil {
		t.Fatal(err)
	}
	s.start(t, s.agent)
	return s
}

// start starts a process, waits until it is ready, and stops it after the test.
func (s *site) start(t *testing.T, p *localfleet.Process) {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Stop(), fleet.Calm(p)); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			log, _ := os.ReadFile(p.Log)
			t.Logf("the end of the log of %s:\n%s", p.Name, log[max(0, len(log)-4000):])
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), slack*time.Minute)
	defer cancel()
	if err := p.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// forget takes a cluster out of the fleet, so that no other test sees it. Its agent has
// stopped by then, which the control plane finds out first. One that has left is no fault.
func (w *world) forget(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), slack*time.Minute)
	defer cancel()
	if out, err := run(ctx, nil, "flotilla", "unregister", name, "--wait", (slack*time.Minute - 5*time.Second).String(), "--kubeconfig", w.Hub.Kubeconfig); err != nil && !strings.Contains(out, "there is no cluster "+name) {
		t.Errorf("%v\n%s", err, out)
	}
}

// expiry returns when the agent's certificate ends.
func (s *site) expiry(t *testing.T) time.Time {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(filepath.Join(filepath.Dir(s.agent.Log), "data", "hub.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range cfg.AuthInfos {
		_, to, err := registration.Life(user.ClientCertificateData)
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	t.Fatal("the agent has no credentials")
	return time.Time{}
}

// judged is nil once the condition Ready of the cluster has a status.
func (w *world) judged(name string, want metav1.ConditionStatus) func(context.Context) error {
	return func(ctx context.Context) error {
		var c clusterv1alpha1.Cluster
		if err := w.hub.Get(ctx, types.NamespacedName{Name: name}, &c); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
		if ready == nil || ready.Status != want {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	}
}

// TestPullMode cuts a member in pull mode off from the control plane until its
// certificate has expired and its cluster counts as lost. It goes on by itself, an
// agent that is killed meanwhile too; and once the link is back it gets a
// certificate, and what is wanted then, without a step in between, a restart of a
// pod, or an eviction.
func TestPullMode(t *testing.T) {
	t.Parallel() // it waits for most of its time
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "pull"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	members := map[string]client.Client{"east": the.members["east"], "west": the.members["west"], s.name: s.client}
	the.Apply(t, fleet.App(namespace, 2, s.name))
	for name, member := range members {
		eventually(t, time.Minute, "the application runs in "+name, func(ctx context.Context) error {
			return fleet.Deployed(namespace, "web", "nginx:1.29", 2)(ctx, name, member)
		})
	}
	t.Run("one namespace for one user", func(t *testing.T) { the.oneNamespace(t, namespace, slices.Sorted(maps.Keys(members))) })
	t.Run("what others say in the agent's name is taken back", func(t *testing.T) { s.impersonated(t, namespace) })

	pods := s.pods(t, namespace)
	generation := s.deployment(t, namespace).Generation
	s.link.Cut()
	s.tamper(t, namespace)
	eventually(t, 30*time.Second, "what was changed in the member is put back", s.says(namespace, "2"))
	for _, replicas := range []int{3, 5, 4, 6, 3} {
		the.Kubectl(t, fleet.App(namespace, replicas, s.name), "apply", "-f", "-")
		eventually(t, time.Minute, "the clusters that are pushed to have the change", func(ctx context.Context) error {
			return errors.Join(fleet.Deployed(namespace, "web", "nginx:1.29", int32(replicas))(ctx, "", the.members["east"]), //nolint:gosec // small
				fleet.Deployed(namespace, "web", "nginx:1.29", int32(replicas))(ctx, "", the.members["west"])) //nolint:gosec // small
		})
	}
	eventually(t, time.Minute, "the cluster counts as lost", the.judged(s.name, metav1.ConditionUnknown))

	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	s.tamper(t, namespace)
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "an agent that starts without the control plane puts back what was changed", s.says(namespace, "2"))
	expired := s.expiry(t)
	eventually(t, 2*agentCertificate, "the certificate has expired", func(context.Context) error {
		if left := time.Until(expired); left > 0 {
			return fmt.Errorf("it is good for %s", left)
		}
		return nil
	})
	if got := s.deployment(t, namespace).Generation; got != generation {
		t.Errorf("the Deployment was changed while the member was cut off: generation %d, was %d", got, generation)
	}

	s.link.Mend()
	eventually(t, time.Minute, "the member has the latest state", func(ctx context.Context) error {
		return errors.Join(fleet.Deployed(namespace, "web", "nginx:1.29", 3)(ctx, s.name, s.client), s.says(namespace, "3")(ctx))
	})
	eventually(t, time.Minute, "the cluster is ready again", the.judged(s.name, metav1.ConditionTrue))
	if renewed := s.expiry(t); !renewed.After(expired) {
		t.Errorf("the certificate ends at %s, and did so before", renewed)
	}
	if got := s.deployment(t, namespace).Generation; got != generation+1 {
		t.Errorf("the Deployment was written %d times, want once: only the latest state counts", got-generation)
	}
	after := s.pods(t, namespace)
	for uid, restarts := range pods {
		if now, there := after[uid]; !there || now != restarts {
			t.Errorf("pod %s was made anew, or its containers: %d restarts, were %d", uid, now, restarts)
		}
	}
	the.stayed(t, namespace, s.name)
}

// impersonated says of the Deployment's Work, as a thief of the agent's token may, that
// it failed and what was sent, and waits until the agent has said otherwise.
func (s *site) impersonated(t *testing.T, namespace string) {
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(s.name), Name: workv1alpha2.WorkName("Deployment", "web", namespace)}
	work := &workv1alpha1.Work{}
	applied := func(ctx context.Context) error {
		if err := the.hub.Get(ctx, key, work); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied); c == nil || c.Reason != workv1alpha1.WorkAppliedSuccessfulReason {
			return fmt.Errorf("the Work says %+v", work.Status.Conditions)
		}
		if len(work.Status.Applied) != 1 || !strings.Contains(work.Status.Applied[0].Observed, ".") {
			return fmt.Errorf("the Work has no record that is proven, but %+v", work.Status.Applied)
		}
		return nil
	}
	eventually(t, time.Minute, "the agent says that it is applied", applied)
	forged := work.DeepCopy()
	forged.Status.Applied[0].Observed, _, _ = strings.Cut(forged.Status.Applied[0].Observed, ".")
	meta.SetStatusCondition(&forged.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionFalse, Reason: "Forged"})
	if err := the.hub.Status().Patch(t.Context(), forged, client.MergeFrom(work)); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "the agent takes it back", applied)
}

// says is nil once the member's ConfigMap says how many replicas there are.
func (s *site) says(namespace, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		var cm corev1.ConfigMap
		if err := s.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web"}, &cm); err != nil {
			return err
		}
		if cm.Data["replicas"] != want {
			return fmt.Errorf("data: %v", cm.Data)
		}
		return nil
	}
}

// tamper changes the member's ConfigMap, as somebody who is there.
func (s *site) tamper(t *testing.T, namespace string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	if err := s.client.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"replicas":"many"}}`))); err != nil {
		t.Fatal(err)
	}
}

func (s *site) deployment(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := s.client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "web"}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// pods returns how often the containers of each pod were started anew, by its UID.
func (s *site) pods(t *testing.T, namespace string) map[types.UID]int32 {
	t.Helper()
	var list corev1.PodList
	if err := s.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[types.UID]int32{}
	for i := range list.Items {
		out[list.Items[i].UID] = 0
		for _, c := range list.Items[i].Status.ContainerStatuses {
			out[list.Items[i].UID] += c.RestartCount
		}
	}
	return out
}

// stayed checks that nothing was taken away from a cluster.
func (w *world) stayed(t *testing.T, namespace, cluster string) {
	t.Helper()
	var b workv1alpha2.ResourceBinding
	if err := w.hub.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: workv1alpha2.BindingName("Deployment", "web")}, &b); err != nil {
		t.Fatal(err)
	}
	placed := slices.ContainsFunc(b.Spec.Clusters, func(c workv1alpha2.TargetCluster) bool { return c.Name == cluster })
	if !placed || len(b.Spec.GracefulEvictionTasks) > 0 {
		t.Errorf("clusters %v, evictions %v", b.Spec.Clusters, b.Spec.GracefulEvictionTasks)
	}
}
