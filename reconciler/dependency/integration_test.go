package dependency_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// TestEverythingGoesAlong: what a Deployment refers to follows it to its
// clusters, moves with it and goes with it, over a restart that writes nothing.
func TestEverythingGoesAlong(t *testing.T) {
	f := newFleet(t, nil)
	d := f.deployment("web", "settings", "late")
	pod := &d.Spec.Template.Spec
	pod.ServiceAccountName = "runner"
	pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: f.meta("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	f.create(f.config("settings"), f.config("stranger"), &corev1.Secret{ObjectMeta: f.meta("pull")}, &corev1.ServiceAccount{ObjectMeta: f.meta("runner")}, claim)
	policy := f.policy("Deployment", "web", "a")
	f.create(policy, d)
	in := func(where string) map[string]string {
		return map[string]string{
			"Deployment web": where, "ConfigMap settings": where, "Secret pull": where, "ServiceAccount runner": where, "PersistentVolumeClaim data": where,
		}
	}
	f.await(in("a"))
	f.wrote("a Deployment and what it refers to", map[string]int{
		"PATCH deployments":                1, // the claim
		"PATCH propagationpolicies/status": 1,
		"POST resourcebindings":            5,
		"PATCH resourcebindings":           1, // what it refers to
		"POST works":                       5,
	})

	late := f.config("late")
	f.create(late)
	want := in("a")
	want["ConfigMap late"] = "a"
	f.await(want)
	f.wrote("something that is made later", map[string]int{"POST resourcebindings": 1, "POST works": 1})

	edit(f, late, func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	f.wrote("an edit of it", map[string]int{"PATCH works": 1})

	f.restart()
	f.wrote("a restart", map[string]int{})

	edit(f, policy, f.to("b", "c"))
	want = in("b c")
	want["ConfigMap late"] = "b c"
	f.await(want)

	edit(f, d, refer("settings"))
	f.await(in("b c"))
	eventually(f, "the binding of what nobody needs", nil, func() *workv1alpha2.ResourceBinding { return f.binding("ConfigMap", "late") })

	f.delete(d)
	f.await(map[string]string{})
	eventually(f, "bindings", 0, func() int {
		var list workv1alpha2.ResourceBindingList
		f.check(f.env.Hub.List(f.ctx, &list, client.InNamespace(f.ns)))
		return len(list.Items)
	})
	if warnings := f.events.warnings(); len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
}

// TestShared: two Deployments need one ConfigMap; it runs where either does. One
// of them leaves while nobody looks.
func TestShared(t *testing.T) {
	f := newFleet(t, nil)
	web, api := f.deployment("web", "settings"), f.deployment("api", "settings")
	first, second := f.policy("Deployment", "web", "a"), f.policy("Deployment", "api", "b")
	second.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	f.create(f.config("settings"), first, second, web, api)
	f.await(map[string]string{"Deployment web": "a", "Deployment api": "b", "ConfigMap settings": "a b"})
	f.awaitIdle()

	b := f.binding("ConfigMap", "settings")
	users := f.binding("Deployment", "web").Labels[workv1alpha2.ResourceBindingPermanentIDLabel] + " " + f.binding("Deployment", "api").Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	label := func(name string) string {
		return b.Labels[workv1alpha2.DependedByLabelPrefix+workv1alpha2.BindingReferenceKey(f.ns, workv1alpha2.BindingName("Deployment", name))]
	}
	want := []any{
		users,
		workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, Name: "settings", UID: b.Spec.Resource.UID, ResourceVersion: b.Spec.Resource.ResourceVersion},
			RequiredBy: []workv1alpha2.BindingSnapshot{
				{Namespace: f.ns, Name: "api-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: f.cluster("b")}}},
				{Namespace: f.ns, Name: "web-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: f.cluster("a")}}},
			},
			ConflictResolution: policyv1alpha1.ConflictOverwrite,
		},
		"ConfigMap",
	}
	if diff := cmp.Diff(want, []any{label("web") + " " + label("api"), b.Spec, b.OwnerReferences[0].Kind}); diff != "" {
		t.Errorf("ids of the users, spec, owner (-want +got):\n%s", diff)
	}
	noted := f.binding("Deployment", "web")
	if diff := cmp.Diff([]any{
		`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"` + f.ns + `","name":"settings"}]`,
		[]string{workv1alpha2.BindingControllerFinalizer, workv1alpha2.BindingDependenciesDistributorFinalizer},
	}, []any{noted.Annotations[workv1alpha2.BindingDependenciesAnnotationKey], noted.Finalizers}); diff != "" {
		t.Errorf("dependencies, finalizers of a user (-want +got):\n%s", diff)
	}
	conflict := "v1alpha2.ResourceBinding Warning DependencyPolicyConflict: conflictResolution is Overwrite for " + f.ns + "/api-deployment, but Abort for " + f.ns + "/web-deployment: Overwrite holds"
	if diff := cmp.Diff([]string{conflict}, f.events.warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}

	f.stop()
	f.delete(api)
	f.start()
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	if got := f.binding("ConfigMap", "settings").Spec.ConflictResolution; got != policyv1alpha1.ConflictAbort {
		t.Errorf("conflictResolution = %s", got)
	}

	f.stop()
	edit(f, first, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
	f.start()
	f.await(map[string]string{"Deployment web": "a"})
	eventually(f, "what is left on the user", []any{"", []string{workv1alpha2.BindingControllerFinalizer}}, func() []any {
		b := f.binding("Deployment", "web")
		return []any{b.Annotations[workv1alpha2.BindingDependenciesAnnotationKey], b.Finalizers}
	})
}

// TestMovedButNotGone: a Deployment that is placed anew runs where it did until
// its Work can be made where it is to run. What it needs stays with it until then,
// what only its last version needs included, and goes after it.
func TestMovedButNotGone(t *testing.T) {
	f := newFleet(t, nil)
	d, p := f.deployment("web", "settings", "late"), f.policy("Deployment", "web", "a")
	f.create(f.config("settings"), f.config("late"), f.config("next"), p, d)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a", "ConfigMap late": "a"})
	broken := &policyv1alpha1.OverridePolicy{
		ObjectMeta: f.meta("broken"),
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("b")}},
				Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{
					Path: "/spec/nothing/here", Operator: policyv1alpha1.OverriderOpReplace, Value: apiextensionsv1.JSON{Raw: []byte(`1`)},
				}}},
			}},
		},
	}
	f.create(broken)
	f.awaitIdle()
	edit(f, p, f.to("b"))
	both := map[string]string{"Deployment web": "a", "ConfigMap settings": "a b", "ConfigMap late": "a b"}
	f.await(both)
	f.awaitIdle()
	f.await(both)
	f.restart()
	f.awaitIdle()
	f.await(both)

	edit(f, d, refer("settings", "next"))
	both["ConfigMap next"] = "a b"
	f.await(both)
	f.awaitIdle()
	f.await(both)

	f.delete(broken)
	f.await(map[string]string{"Deployment web": "b", "ConfigMap settings": "b", "ConfigMap next": "b"})
	eventually(f, "what is noted of the user", "next settings", func() string {
		var deps []kinds.Dependency
		if text := f.binding("Deployment", "web").GetAnnotations()[workv1alpha2.BindingDependenciesAnnotationKey]; text != "" {
			if err := json.Unmarshal([]byte(text), &deps); err != nil {
				return err.Error()
			}
		}
		names := make([]string, 0, len(deps))
		for i := range deps {
			names = append(names, deps[i].Name)
		}
		return strings.Join(names, " ")
	})
}

// TestSwitchedOff: the gate lets go what was taken along, and what is deleted
// then does not hang.
func TestSwitchedOff(t *testing.T) {
	f := newFleet(t, nil)
	d := f.deployment("web", "settings")
	f.create(f.config("settings"), f.policy("Deployment", "web", "a"), d)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	f.stop()
	f.off = true
	f.start()
	f.await(map[string]string{"Deployment web": "a"})
	f.delete(d)
	f.await(map[string]string{})
}

// TestHandOver: a policy takes over what users need, and gives it back, and
// clusters that need it hold the same Work all the time.
func TestHandOver(t *testing.T) {
	f := newFleet(t, nil)
	d, users := f.deployment("web", "settings"), f.policy("Deployment", "web", "a")
	f.create(f.config("settings"), users, d)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	uid := f.works()["ConfigMap settings"]["a"].UID

	own := f.policy("ConfigMap", "settings", "b")
	f.create(own)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a b"})
	f.awaitIdle()

	f.delete(own)
	eventually(f, "claim", "", func() string {
		return f.binding("ConfigMap", "settings").Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	})
	f.awaitIdle()
	settings := f.config("settings")
	edit(f, settings, func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	f.wrote("an edit of what its policy let go", map[string]int{"PATCH works": 2})

	own = f.policy("ConfigMap", "settings", "a")
	f.create(own)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	f.awaitIdle()
	edit(f, users, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
	eventually(f, "users", 0, func() int { return len(f.binding("ConfigMap", "settings").Spec.RequiredBy) })
	f.awaitIdle()
	if diff := cmp.Diff(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"}, f.holds()); diff != "" {
		t.Errorf("what clusters hold (-want +got):\n%s", diff)
	}

	if got := f.works()["ConfigMap settings"]["a"].UID; got != uid {
		t.Errorf("the Work in a was made anew: %s, was %s", got, uid)
	}
}

// TestHandOverAtOnce: a policy comes and the last user leaves in the same moment.
func TestHandOverAtOnce(t *testing.T) {
	f := newFleet(t, nil)
	d := f.deployment("web", "settings")
	f.create(f.config("settings"), f.policy("Deployment", "web", "a"), d)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	uid := f.works()["ConfigMap settings"]["a"].UID
	f.create(f.policy("ConfigMap", "settings", "a"))
	edit(f, d, refer())
	eventually(f, "where the binding is placed, and who needs it", []int{1, 0}, func() []int {
		b := f.binding("ConfigMap", "settings")
		if b == nil {
			return nil
		}
		return []int{len(b.Spec.Clusters), len(b.Spec.RequiredBy)}
	})
	if got := f.works()["ConfigMap settings"]["a"].UID; got != uid {
		t.Errorf("the Work in a was made anew: %s, was %s", got, uid)
	}
}

// TestLazy: a Lazy policy that waits does not place what others need.
func TestLazy(t *testing.T) {
	f := newFleet(t, nil)
	d := f.deployment("web", "settings")
	settings := f.config("settings")
	f.create(settings, f.policy("Deployment", "web", "a"), d)
	f.await(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"})
	lazy := f.policy("ConfigMap", "settings", "b")
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	f.create(lazy)
	eventually(f, "claim", true, func() bool {
		edit(f, settings, func(*corev1.ConfigMap) {})
		return settings.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] != ""
	})
	f.awaitIdle()
	if diff := cmp.Diff(map[string]string{"Deployment web": "a", "ConfigMap settings": "a"}, f.holds()); diff != "" {
		t.Errorf("what clusters hold (-want +got):\n%s", diff)
	}
	// The last user leaves: what only it asked for goes, and nothing is held up.
	f.delete(d)
	f.await(map[string]string{})
	edit(f, settings, func(c *corev1.ConfigMap) { c.Data["a"] = "2" })
	f.await(map[string]string{"ConfigMap settings": "b"})
}

// TestScopes: cluster-scoped templates take along what they need, and what is
// cluster-scoped goes along; by rules of an interpreter, which fail for a while.
func TestScopes(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	var broken atomic.Bool
	var f *fleet
	rules := kinds.Table{
		role: {Dependencies: func(obj kinds.Object) ([]kinds.Dependency, error) {
			if broken.Load() {
				return nil, errors.New("no answer")
			}
			if obj.GetLabels()["leaf"] != "" {
				return nil, nil
			}
			return []kinds.Dependency{
				{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.ns, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": "role"}}},
				{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: f.ns + ":leaf"},
			}, nil
		}},
	}
	f = newFleet(t, rules)
	root := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns + ":root"}}
	leaf := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.ns + ":leaf", Labels: map[string]string{"leaf": "yes"}}}
	policy := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.ns},
		Spec: policyv1alpha1.PropagationSpec{
			PropagateDeps:     true,
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: role.GroupVersion().String(), Kind: role.Kind, Name: root.Name}},
			Placement:         policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.cluster("a")}}},
		},
	}
	t.Cleanup(func() {
		for _, obj := range []client.Object{root, leaf, policy} {
			_ = client.IgnoreNotFound(f.env.Hub.Delete(f.ctx, obj))
		}
	})
	labelled := f.config("settings")
	labelled.Labels = map[string]string{"for": "role"}
	other := f.config("other")
	f.create(labelled, other, leaf, policy, root)
	all := map[string]string{"ClusterRole " + root.Name: "a", "ClusterRole " + leaf.Name: "a", "ConfigMap settings": "a"}
	f.await(all)

	broken.Store(true)
	edit(f, root, func(r *rbacv1.ClusterRole) { r.Labels = map[string]string{"edited": "yes"} })
	fault := "find out what it refers to: dependencies of ClusterRole " + root.Name + ": no answer"
	key := client.ObjectKey{Name: workv1alpha2.BindingName("ClusterRole", root.Name)}
	noted := func() string {
		b := &workv1alpha2.ClusterResourceBinding{}
		f.check(f.env.Hub.Get(f.ctx, key, b))
		return b.Annotations["propagation.flotilla.io/dependency-fault"]
	}
	eventually(f, "fault", true, func() bool { return noted() != "" })
	f.restart()
	if diff := cmp.Diff(all, f.holds()); diff != "" {
		t.Errorf("what clusters hold while nobody knows what is needed (-want +got):\n%s", diff)
	}
	if got := noted(); got != fault {
		t.Errorf("fault %q, want %q", got, fault)
	}
	broken.Store(false)
	eventually(f, "fault", "", noted)

	edit(f, other, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"for": "role"} })
	edit(f, labelled, func(c *corev1.ConfigMap) { c.Labels = nil })
	want := maps.Clone(all)
	delete(want, "ConfigMap settings")
	want["ConfigMap other"] = "a"
	f.await(want)

	f.delete(root)
	f.await(map[string]string{})
}

// TestTogether: what a Deployment refers to is on its way when the Deployment is;
// the log says how long after it.
func TestTogether(t *testing.T) {
	f := newFleet(t, nil)
	configs := []string{"c1", "c2", "c3", "c4", "c5"}
	for _, name := range configs {
		f.create(f.config(name))
	}
	f.create(f.policy("Deployment", "warm", "a"), f.policy("Deployment", "web", "a", "b", "c"))
	warm := f.deployment("warm", configs...)
	f.create(warm)
	eventually(f, "works", 6, func() int { return len(f.holds()) })
	f.awaitIdle()
	f.create(f.deployment("web", configs...))
	eventually(f, "works", []string{"a b c"}, func() []string {
		holds := f.holds()
		delete(holds, "Deployment warm")
		return slices.Compact(slices.Sorted(maps.Values(holds)))
	})
	f.traffic.mu.Lock()
	defer f.traffic.mu.Unlock()
	var user, needed time.Duration
	for name, at := range f.traffic.works {
		after := at.Sub(f.traffic.bound)
		if strings.HasPrefix(name, "web-") {
			user = max(user, after)
		} else {
			needed = max(needed, after)
		}
	}
	t.Logf("after its binding, the last Work of the Deployment was there in %v, the last of %d Works of what it needs in %v", user, len(f.traffic.works)-3, needed)
}
