package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/fleettest"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/reconciler"
)

// from and to are the members between which templates are moved.
const from, to = "east", "west"

// hubs and edges lend the tests of this package control planes and members.
var (
	hubs  servertest.Pool
	edges membertest.Pool
)

func TestMain(m *testing.M) { os.Exit(hubs.Main(m, &edges)) }

// moves is a control plane with all loops but those of Git, and two members.
type moves struct {
	*testing.T
	hub   *servertest.Env
	edges map[string]client.Client
	loops *func() error // what stops them
	// register adds the loops.
	register func(context.Context, ctrl.Manager) error
}

func newMoves(t *testing.T) *moves { return newMovesWith(t, registerMoves) }

func newMovesWith(t *testing.T, register func(context.Context, ctrl.Manager) error) *moves {
	if testing.Short() {
		t.Skip("runs a control plane and two members")
	}
	hub := hubs.Env(t)
	stop := hub.StartLoops(t, register)
	m := &moves{T: t, hub: hub, edges: map[string]client.Client{}, loops: &stop, register: register}
	for _, name := range []string{from, to} {
		m.join(name)
	}
	return m
}

func registerMoves(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "dependency", "binding", "namespace", "execution", "status", "cluster"},
	})
}

// restart ends the loops and starts others: what is pending must not live in memory.
func (m *moves) restart() {
	m.Helper()
	m.check((*m.loops)())
	*m.loops = m.hub.StartLoops(m.T, m.register)
}

// in returns m for a step of the test.
func (m *moves) in(t *testing.T) *moves {
	out := *m
	out.T = t
	return &out
}

func (m *moves) join(name string) {
	m.Helper()
	at := edges.Member(m.T, member.Options{Name: name, Nodes: 1})
	m.Cleanup(func() { m.check((*m.loops)()) }) // before the member is put back
	edge, err := client.NewWithWatch(at.Config, client.Options{Scheme: scheme.New()})
	m.check(err)
	m.check(join.Join(m.Context(), join.Options{Name: name, Hub: m.hub.Hub, Member: edge, MemberConfig: at.Config}))
	m.check(join.Ready(m.Context(), m.hub.Hub, name, fleettest.ReadyTimeout))
	m.edges[name] = edge
}

func (m *moves) check(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// start has the Deployment "web", and the ConfigMap that it needs, run in the
// clusters.
func (m *moves) start(ns string, change func(*policyv1alpha1.PropagationPolicy), clusters ...string) {
	m.Helper()
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "web:1",
				EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
			}}}},
		},
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: policyv1alpha1.PropagationSpec{
		PropagateDeps:     true,
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}},
	}}
	if change != nil {
		change(policy)
	}
	for _, obj := range []client.Object{policy, web, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}} {
		m.check(m.hub.Hub.Create(m.Context(), obj))
	}
	for _, cluster := range clusters {
		m.eventually(ns+" runs in "+cluster, func() error { return m.runs(cluster, ns) })
	}
	for name := range m.edges {
		m.eventually("namespace in "+name, func() error { return m.edges[name].Get(m.Context(), client.ObjectKey{Name: ns}, &corev1.Namespace{}) })
	}
}

func (m *moves) eventually(what string, check func() error) {
	m.Helper()
	servertest.Eventually(m.T, what, func(context.Context) error { return check() })
}

// edit changes the policy of "web".
func (m *moves) edit(ns string, change func(*policyv1alpha1.PropagationPolicy)) {
	m.Helper()
	m.editNamed(ns, "web", change)
}

// editNamed is edit of a policy by its name.
func (m *moves) editNamed(ns, name string, change func(*policyv1alpha1.PropagationPolicy)) {
	m.Helper()
	m.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p := &policyv1alpha1.PropagationPolicy{}
		if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: name}, p); err != nil {
			return err
		}
		change(p)
		return m.hub.Hub.Update(m.Context(), p)
	}))
}

func affinity(clusters ...string) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement.ClusterAffinity.ClusterNames = clusters }
}

// runs reports whether "web", and what it needs, are in a cluster, ready.
func (m *moves) runs(cluster, ns string) error {
	web := &appsv1.Deployment{}
	if err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web); err != nil {
		return err
	}
	if web.Status.AvailableReplicas == 0 || web.DeletionTimestamp != nil {
		return fmt.Errorf("%s: %d available, deleted at %v", cluster, web.Status.AvailableReplicas, web.DeletionTimestamp)
	}
	return m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "settings"}, &corev1.ConfigMap{})
}

var errStays = errors.New("is still there")

func (m *moves) gone(cluster, ns string) error {
	for _, obj := range []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}} {
		if err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: obj.GetName()}, obj); err == nil {
			return errStays
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// work returns the Work of "web" for a cluster.
func (m *moves) work(cluster, ns string) (*workv1alpha1.Work, error) {
	w := &workv1alpha1.Work{}
	err := m.hub.Hub.Get(m.Context(), client.ObjectKey{
		Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("Deployment", "web", ns),
	}, w)
	return w, err
}

// refuse has a cluster take no Deployment in a namespace.
func (m *moves) refuse(cluster, ns string) *corev1.ResourceQuota {
	m.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "none"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")}},
	}
	m.check(m.edges[cluster].Create(m.Context(), quota))
	m.eventually("quota", func() error {
		err := m.edges[cluster].Get(m.Context(), client.ObjectKeyFromObject(quota), quota)
		if err == nil && len(quota.Status.Hard) == 0 {
			return errors.New("not in force yet")
		}
		return err
	})
	return quota
}

// TestMoveDirectly moves a template whose policy says Directly: it is left before
// it starts elsewhere, be that refused or not. One cluster less is left at once, too,
// whatever the policy says.
func TestMoveDirectly(t *testing.T) {
	m := newMoves(t)
	t.Run("moved", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.start(ns, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}
		}, from)
		m.refuse(to, ns)
		m.edit(ns, affinity(to))
		m.eventually("left although the other refuses", func() error { return m.gone(from, ns) })
	})
	t.Run("one cluster less", func(t *testing.T) {
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.start(ns, nil, from, to)
		m.check(m.hub.Hub.Create(m.Context(), nowhere(ns)))
		m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) {
			p.Spec.Placement.ClusterAffinity.ClusterNames = []string{to}
		})
		m.eventually("left although the other is not healthy", func() error { return m.gone(from, ns) })
	})
}

// TestMoveWaits moves a template to a cluster that refuses it, has it suspended
// or does not get it healthy: it is left where it ran once the copy elsewhere is
// healthy, and not before.
func TestMoveWaits(t *testing.T) {
	m := newMoves(t)
	var quota *corev1.ResourceQuota
	suspend := func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{to}}}
	}
	cases := []struct {
		name string
		// hinder keeps the copy from running in the new cluster, mend takes that back.
		hinder, mend func(ns string)
		// stuck says that the Work in the new cluster is as far as it gets.
		stuck func(w *workv1alpha1.Work) bool
	}{
		{"refused", func(ns string) { quota = m.refuse(to, ns) }, func(string) { m.check(m.edges[to].Delete(m.Context(), quota)) }, func(w *workv1alpha1.Work) bool {
			return meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkApplied)
		}},
		{"suspended", func(ns string) { m.edit(ns, suspend) }, func(ns string) {
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
		}, func(w *workv1alpha1.Work) bool {
			return meta.IsStatusConditionFalse(w.Status.Conditions, workv1alpha1.WorkDispatching)
		}},
		{"unhealthy", func(ns string) { m.check(m.hub.Hub.Create(m.Context(), nowhere(ns))) }, func(ns string) { m.check(m.hub.Hub.Delete(m.Context(), nowhere(ns))) }, func(w *workv1alpha1.Work) bool {
			return slices.ContainsFunc(w.Status.ManifestStatuses, func(s workv1alpha1.ManifestStatus) bool { return s.Health == workv1alpha1.ResourceUnhealthy })
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			m := m.in(t)
			ns := m.hub.Namespace(t)
			m.start(ns, nil, from)
			tc.hinder(ns)
			m.edit(ns, affinity(to))
			m.eventually("the new cluster has a Work that gets no further", func() error {
				w, err := m.work(to, ns)
				if err == nil && !tc.stuck(w) {
					return fmt.Errorf("status %+v", w.Status)
				}
				return err
			})
			m.hub.QuietRevision(t)
			if err := m.runs(from, ns); err != nil {
				t.Fatalf("there is no copy left: in the old cluster: %v", err)
			}
			m.restart()
			tc.mend(ns)
			m.eventually("left once the copy elsewhere runs", func() error {
				if err := m.gone(from, ns); err != nil {
					return err
				}
				if err := m.runs(to, ns); err != nil {
					t.Fatalf("gone from the old cluster before the new one has it: %v", err)
				}
				return nil
			})
		})
	}
}

// nowhere is an override by which no node of the new cluster takes the pods.
func nowhere(ns string) *policyv1alpha1.OverridePolicy {
	return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "nowhere"}, Spec: policyv1alpha1.OverrideSpec{
		OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{to}},
			Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
				Path: "/spec/template/spec/nodeSelector", Operator: policyv1alpha1.OverriderOpAdd, Value: apiextensionsv1.JSON{Raw: []byte(`{"no":"where"}`)},
			}}},
		}},
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}}
}
