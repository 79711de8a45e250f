package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/failover"
	"github.com/flotilla-io/flotilla/policies/volumes"
	"github.com/flotilla-io/flotilla/reconciler"
)

// claim is what the volume of "web" is called.
const claim = "data"

// TestAClaimOutlivesItsWork: a PersistentVolumeClaim leaves no cluster while it stands on the
// control plane, whatever becomes of what carries it there. It stays as it is, is the same where it is
// wanted again, and goes when it is itself deleted.
func TestAClaimOutlivesItsWork(t *testing.T) {
	m := newMovesWith(t, registerVolumes)
	for name, leave := range map[string]func(m *moves, cluster string, on bool){"its cluster is lost": (*moves).taint, "its cluster is drained": (*moves).drain} {
		t.Run(name, func(t *testing.T) { m.in(t).leavesAClaim(leave) })
	}
	for name, tc := range map[string]struct {
		// own says that a policy of its own carries the claim; else it goes along with what uses it.
		own bool
		// placed is where what uses it runs; from where empty.
		placed []string
		takes  func(m *moves, ns string)
		// back has the cluster have it again; nil where that is so at once.
		back func(m *moves, ns string)
	}{
		"another policy selects it by its label": {own: true, takes: func(m *moves, ns string) {
			m.check(m.hub.Hub.Create(m.Context(), claimPolicy(ns, "elsewhere", "west", to)))
			m.label(ns, "west")
		}, back: func(m *moves, ns string) { m.label(ns, "east") }},
		"dependencies are not taken along any more": {takes: func(m *moves, ns string) {
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
		}, back: func(m *moves, ns string) {
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = true })
		}},
		"what uses it is removed": {takes: func(m *moves, ns string) {
			m.check(m.hub.Hub.Delete(m.Context(), m.user(ns, 1)))
		}, back: func(m *moves, ns string) { m.check(m.hub.Hub.Create(m.Context(), m.user(ns, 1))) }},
		"the volume is taken out of what uses it": {takes: func(m *moves, ns string) {
			m.change(ns, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = nil })
		}, back: func(m *moves, ns string) {
			m.change(ns, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = m.user(ns, 1).Spec.Template.Spec.Volumes })
		}},
		"what uses it is made anew": {takes: func(m *moves, ns string) {
			m.check(m.hub.Hub.Delete(m.Context(), m.user(ns, 1)))
			m.eventually("its Work is on its way", func() error { return m.claimWorkGoes(from, ns) }) // else it may stay all along
			m.check(m.hub.Hub.Create(m.Context(), m.user(ns, 1)))
		}},
		"what uses it has no replica left in the cluster": {placed: []string{from, to}, takes: func(m *moves, ns string) {
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Placement.ReplicaScheduling.WeightPreference.StaticWeightList = p.Spec.Placement.ReplicaScheduling.WeightPreference.StaticWeightList[1:]
			})
		}, back: func(m *moves, ns string) {
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement.ReplicaScheduling = divided(from, to) })
		}},
		"the policy of higher priority is deleted": {own: true, takes: func(m *moves, ns string) {
			m.editNamed(ns, "here", func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Priority = ptr.To[int32](1) })
			m.check(m.hub.Hub.Create(m.Context(), claimPolicy(ns, "elsewhere", "east", to)))
			m.check(m.hub.Hub.Delete(m.Context(), claimPolicy(ns, "here", "east", from)))
		}, back: func(m *moves, ns string) {
			m.check(m.hub.Hub.Delete(m.Context(), claimPolicy(ns, "elsewhere", "east", to)))
			m.check(m.hub.Hub.Create(m.Context(), claimPolicy(ns, "here", "east", from)))
		}},
		"the policy that takes it along is deleted": {takes: func(m *moves, ns string) {
			m.check(m.hub.Hub.Create(m.Context(), m.plain(ns, from, "")))
			m.check(m.hub.Hub.Delete(m.Context(), &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}))
		}, back: func(m *moves, ns string) {
			m.editNamed(ns, "plain", func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = true })
		}},
		"another policy selects what uses it by its label": {takes: func(m *moves, ns string) {
			m.check(m.hub.Hub.Create(m.Context(), m.plain(ns, to, "west")))
			m.edit(ns, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.ResourceSelectors[0].Name, p.Spec.ResourceSelectors[0].LabelSelector = "", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "at", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			})
			m.change(ns, func(d *appsv1.Deployment) { d.Labels = map[string]string{"at": "west"} })
		}, back: func(m *moves, ns string) {
			m.change(ns, func(d *appsv1.Deployment) { d.Labels = nil })
		}},
		"what uses it moves": {takes: func(m *moves, ns string) { m.edit(ns, affinity(to)) }, back: func(m *moves, ns string) { m.edit(ns, affinity(from)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := m.in(t)
			ns := m.hub.Namespace(t)
			m.volume(ns, tc.own, tc.placed...)
			var was types.UID
			m.eventually("the cluster has the claim", func() error { return m.hasClaim(from, ns, &was) })

			work := m.claimWork(from, ns)
			tc.takes(m, ns)
			m.eventually("its Work has ended", func() error {
				now := m.claimWork(from, ns)
				if now != nil && (work == nil || now.UID == work.UID) {
					return errStays
				}
				return nil
			})
			if tc.back != nil {
				m.same(from, ns, was)
				m.eventually("the cluster says that it stays", func() error { return m.keeps(from, ns, true) })
				tc.back(m, ns)
			}
			m.eventually("it is taken over again", func() error {
				now := m.claimWork(from, ns)
				if now == nil || !applied(now) {
					return fmt.Errorf("the Work is %v", now)
				}
				return nil
			})
			m.same(from, ns, was)
			m.eventually("nothing is said of it any more", func() error { return m.keeps(from, ns, false) })

			m.check(m.hub.Hub.Delete(m.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim}}))
			m.eventually("it goes as it is deleted", func() error { return m.claimGoes(from, ns) })
		})
	}
	t.Run("it is deleted soon after what uses it", func(t *testing.T) {
		t.Parallel()
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.volume(ns, false)
		m.eventually("the cluster has the claim", func() error { return m.hasClaim(from, ns, new(types.UID)) })
		m.check(m.hub.Hub.Delete(m.Context(), m.user(ns, 1)))
		m.eventually("its Work is on its way", func() error { return m.claimWorkGoes(from, ns) })
		m.check(m.hub.Hub.Delete(m.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim}}))
		m.eventually("it goes as it is deleted", func() error { return m.claimGoes(from, ns) })
	})
	t.Run("it says itself that it goes with its Work", func(t *testing.T) {
		t.Parallel()
		m := m.in(t)
		ns := m.hub.Namespace(t)
		m.volume(ns, false)
		m.eventually("the cluster has the claim", func() error { return m.hasClaim(from, ns, new(types.UID)) })
		of := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim}}
		m.check(m.hub.Hub.Patch(t.Context(), of, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+workv1alpha2.AllowCascadeAnnotation+`":"true"}}}`))))
		m.eventually("the cluster has the word", func() error {
			live := &corev1.PersistentVolumeClaim{}
			if err := m.edges[from].Get(m.Context(), client.ObjectKeyFromObject(of), live); err != nil || live.Annotations[workv1alpha2.AllowCascadeAnnotation] == "" {
				return errors.Join(err, errors.New("it does not say so"))
			}
			return nil
		})
		m.check(m.hub.Hub.Delete(m.Context(), m.user(ns, 1)))
		m.eventually("it goes", func() error { return m.claimGoes(from, ns) })
	})
}

// registerVolumes are the loops of moves, with those that report what stays, and that move what is lost.
func registerVolumes(ctx context.Context, mgr ctrl.Manager) error {
	return reconciler.Register(ctx, mgr, reconciler.Options{
		Controllers: []string{"template", "scheduler", "rebalance", "dependency", "binding", "namespace", "execution", "status", "cluster", "orphans"},
		Scheduling:  reconciler.Scheduling{Failover: reconciler.Failover{Rules: failover.Rules{Taints: true, State: true}}},
	})
}

// leavesAClaim has what uses a claim leave its cluster for another one: the claim stays, and is reported.
func (m *moves) leavesAClaim(leave func(m *moves, cluster string, on bool)) {
	ns := m.hub.Namespace(m.T)
	m.volume(ns, false)
	var was types.UID
	m.eventually("the cluster has the claim", func() error { return m.hasClaim(from, ns, &was) })
	m.edit(ns, oneOf(0, policyv1alpha1.PurgeModeDirectly))
	leave(m, from, true)
	m.eventually("the other cluster has one", func() error { return m.hasClaim(to, ns, new(types.UID)) })
	m.eventually("its Work has ended", func() error {
		if m.claimWork(from, ns) != nil {
			return errStays
		}
		return nil
	})
	m.same(from, ns, was)
	m.eventually("the cluster says that it stays", func() error { return m.keeps(from, ns, true) })
	leave(m, from, false)
	m.edit(ns, affinity(from))
	m.eventually("nothing is said of it any more", func() error { return m.keeps(from, ns, false) })
	m.same(from, ns, was)
	m.check(m.hub.Hub.DeleteAllOf(m.Context(), &policyv1alpha1.PropagationPolicy{}, client.InNamespace(ns)))
}

// keeps errs while a cluster does not say that the claim stays there, or says so and is not to.
func (m *moves) keeps(cluster, ns string, want bool) error {
	c := &clusterv1alpha1.Cluster{}
	if err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
		return err
	}
	stay := volumes.StayingIn(c)
	if got := slices.Contains(stay, types.NamespacedName{Namespace: ns, Name: claim}); got != want {
		return fmt.Errorf("the claims %v stay in %s", stay, cluster)
	}
	return nil
}

// plain carries what uses the claim to a cluster, and not the claim; with a label only if that says so.
func (m *moves) plain(ns, cluster, label string) *policyv1alpha1.PropagationPolicy {
	of := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	if label != "" {
		of.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"at": label}}
	}
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plain"}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{of},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}},
	}}
}

// claimWorkGoes expects the Work of the claim in a cluster to be deleted, or about to be.
func (m *moves) claimWorkGoes(cluster, ns string) error {
	if w := m.claimWork(cluster, ns); w != nil && w.DeletionTimestamp == nil {
		return errStays
	}
	return nil
}

// user is a Deployment that uses the claim.
func (m *moves) user(ns string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
				Volumes:    []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
			},
		}},
	}
}

// volume makes a claim, what uses it, and the policy that carries that; and one for the claim, if it has its own.
func (m *moves) volume(ns string, own bool, clusters ...string) {
	m.Helper()
	replicas := int32(max(1, len(clusters)))
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: policyv1alpha1.PropagationSpec{
		PropagateDeps:     !own,
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from}}},
	}}
	if len(clusters) > 0 {
		policy.Spec.Placement.ClusterAffinity.ClusterNames = clusters
		policy.Spec.Placement.ReplicaScheduling = divided(clusters...)
	}
	objects := []client.Object{policy, m.user(ns, replicas), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim, Labels: map[string]string{"at": "east"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}}
	if own {
		objects = append(objects, claimPolicy(ns, "here", "east", from))
	}
	for _, obj := range objects {
		m.check(m.hub.Hub.Create(m.Context(), obj))
	}
}

// claimPolicy carries claims with a label to a cluster.
func claimPolicy(ns, name, label, cluster string) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "PersistentVolumeClaim", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"at": label}}}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}}},
		Failover:          &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}},
	}}
}

// divided divides replicas equally.
func divided(clusters ...string) *policyv1alpha1.ReplicaSchedulingStrategy {
	out := &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{},
	}
	for _, name := range clusters {
		out.WeightPreference.StaticWeightList = append(out.WeightPreference.StaticWeightList, policyv1alpha1.StaticClusterWeight{
			TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{name}}, Weight: 1,
		})
	}
	return out
}

// label gives the claim another label.
func (m *moves) label(ns, value string) {
	m.Helper()
	of := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim}}
	m.check(m.hub.Hub.Patch(m.Context(), of, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"at":"`+value+`"}}}`))))
}

// change changes what uses the claim.
func (m *moves) change(ns string, change func(*appsv1.Deployment)) {
	m.Helper()
	before := &appsv1.Deployment{}
	m.check(m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, before))
	after := before.DeepCopy()
	change(after)
	m.check(m.hub.Hub.Patch(m.Context(), after, client.MergeFrom(before)))
}

// hasClaim errs while a cluster does not have the claim, and says which one it has.
func (m *moves) hasClaim(cluster, ns string, uid *types.UID) error {
	live := &corev1.PersistentVolumeClaim{}
	err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: claim}, live)
	*uid = live.UID
	return err
}

// claimGoes errs while a cluster has the claim and was not asked to delete it: a pod may keep it for a while.
func (m *moves) claimGoes(cluster, ns string) error {
	live := &corev1.PersistentVolumeClaim{}
	err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: claim}, live)
	if apierrors.IsNotFound(err) || err == nil && live.DeletionTimestamp != nil {
		return nil
	}
	return errors.Join(err, errStays)
}

// same says it where a cluster does not have the claim that it had.
func (m *moves) same(cluster, ns string, was types.UID) {
	m.Helper()
	live := &corev1.PersistentVolumeClaim{}
	if err := m.edges[cluster].Get(m.Context(), client.ObjectKey{Namespace: ns, Name: claim}, live); err != nil {
		m.Fatalf("the cluster has lost the claim: %v", err)
	}
	if live.UID != was || live.DeletionTimestamp != nil {
		m.Fatalf("the cluster has the claim %s, deleted at %v; it had %s", live.UID, live.DeletionTimestamp, was)
	}
}

// claimWork is the Work of the claim in a cluster; nil for none.
func (m *moves) claimWork(cluster, ns string) *workv1alpha1.Work {
	m.Helper()
	w := &workv1alpha1.Work{}
	err := m.hub.Hub.Get(m.Context(), client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(cluster), Name: workv1alpha2.WorkName("PersistentVolumeClaim", claim, ns)}, w)
	if apierrors.IsNotFound(err) {
		return nil
	}
	m.check(err)
	return w
}

// applied reports whether a Work says that its cluster has it.
func applied(w *workv1alpha1.Work) bool {
	for _, c := range w.Status.Conditions {
		if c.Type == workv1alpha1.WorkApplied {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// TestAClaimThatIsWantedAgain: a claim is deleted while its clusters do not answer, and is there again before they do. It stays in
// them as it was, with its data, in those that it is placed in and in others.
func TestAClaimThatIsWantedAgain(t *testing.T) {
	m := newMovesWith(t, registerVolumes)
	ns := m.hub.Namespace(t)
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "PersistentVolumeClaim"}},
		Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{from, to}}},
	}}
	template := func() *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: claim}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
	}
	m.check(m.hub.Hub.Create(t.Context(), policy))
	m.check(m.hub.Hub.Create(t.Context(), template()))
	was := map[string]*types.UID{from: new(types.UID), to: new(types.UID)}
	for cluster, uid := range was {
		m.eventually(cluster+" has the claim", func() error { return m.hasClaim(cluster, ns, uid) })
	}

	m.check((*m.loops)())
	*m.loops = m.hub.StartLoops(t, func(ctx context.Context, mgr ctrl.Manager) error {
		return reconciler.Register(ctx, mgr, reconciler.Options{Controllers: []string{"template", "scheduler", "binding", "namespace", "cluster"}})
	})
	m.check(m.hub.Hub.Delete(t.Context(), template()))
	for cluster := range was {
		m.eventually("its Work in "+cluster+" waits to take it along", func() error {
			w := m.claimWork(cluster, ns)
			if w == nil || w.DeletionTimestamp == nil || w.Annotations[workv1alpha2.TemplateGoneAnnotation] == "" {
				return fmt.Errorf("it is %+v", w)
			}
			return nil
		})
	}
	m.edit(ns, affinity(to))
	m.check(m.hub.Hub.Create(t.Context(), template()))
	for cluster := range was {
		m.eventually("its Work in "+cluster+" leaves it there", func() error {
			if w := m.claimWork(cluster, ns); w == nil || w.Annotations[workv1alpha2.TemplateGoneAnnotation] != "" {
				return fmt.Errorf("it is %+v", w)
			}
			return nil
		})
	}
	m.restart()
	m.eventually("it is carried to the one cluster again", func() error {
		if w := m.claimWork(to, ns); w == nil || w.DeletionTimestamp != nil {
			return fmt.Errorf("its Work is %+v", w)
		}
		return nil
	})
	m.eventually("the other one says that it stays", func() error { return m.keeps(from, ns, true) })
	for cluster, uid := range was {
		m.same(cluster, ns, *uid)
	}
}
