package dependency_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/dependency"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		tb.Fatal(err)
	}
	return obj
}

func settings(tb testing.TB) *unstructured.Unstructured {
	return object(tb, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: cm-1, resourceVersion: "5"}, data: {a: b}}`)
}

// user runs in clusters, separated by commas.
func user(name, clusters string, change ...func(*dependency.User)) dependency.User {
	u := dependency.User{Ref: dependency.Ref{Namespace: "shop", Name: name}, ID: "id-" + name, Clusters: slices.DeleteFunc(strings.Split(clusters, ","), func(c string) bool { return c == "" })}
	for _, f := range change {
		f(&u)
	}
	return u
}

func overwrites(u *dependency.User) { u.Overwrites = true }
func preserves(u *dependency.User)  { u.Preserves = true }
func reports(u *dependency.User)    { u.Reports = true }

func label(name string) string {
	return workv1alpha2.DependedByLabelPrefix + workv1alpha2.BindingReferenceKey("shop", name)
}

func snapshot(name string, clusters ...string) workv1alpha2.BindingSnapshot {
	s := workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name}
	for _, c := range clusters {
		s.Clusters = append(s.Clusters, workv1alpha2.TargetCluster{Name: c})
	}
	return s
}

// attached is the binding of settings that web needs in a.
func attached(change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings-configmap",
			Labels:          map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "new", label("web"): "id-web"},
			Finalizers:      []string{workv1alpha2.BindingControllerFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: "cm-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:           workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: "cm-1", ResourceVersion: "5"},
			RequiredBy:         []workv1alpha2.BindingSnapshot{snapshot("web", "a")},
			ConflictResolution: policyv1alpha1.ConflictAbort,
		},
	}
	for _, f := range change {
		f(b)
	}
	return b
}

// governed is carried by a policy besides.
func governed(b *workv1alpha2.ResourceBinding) {
	b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "p-1"
	b.Annotations = map[string]string{
		policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: "p",
		propagation.DigestAnnotation: "d",
	}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "z"}}
	b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
}

// released was carried by a policy.
func released(b *workv1alpha2.ResourceBinding) {
	governed(b)
	propagation.Unclaim(b)
}

func alone(b *workv1alpha2.ResourceBinding) {
	b.Spec.RequiredBy = nil
	delete(b.Labels, label("web"))
}

func all(dependency.Ref) bool { return true }

func TestDecide(t *testing.T) {
	newest := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: cm-2, resourceVersion: "9"}}`)
	digest, err := propagation.Digest(settings(t))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		object   *unstructured.Unstructured
		binding  *workv1alpha2.ResourceBinding
		users    []dependency.User
		left     func(dependency.Ref) bool
		want     *workv1alpha2.ResourceBinding
		joined   string
		released string
		conflict string
	}{
		"the first user": {
			object: settings(t), users: []dependency.User{user("web", "a")},
			want: attached(), joined: "shop/web",
		},
		"nothing to do": {object: settings(t), binding: attached(), users: []dependency.User{user("web", "a")}, left: all, want: attached()},
		"nobody":        {object: settings(t)},
		"a user that runs nowhere": {
			object: settings(t), users: []dependency.User{user("web", "")},
		},
		"a second user, in other clusters": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "a"), user("api", "b,c")}, left: all,
			want: attached(func(b *workv1alpha2.ResourceBinding) {
				b.Labels[label("api")] = "id-api"
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("api", "b", "c"), snapshot("web", "a")}
			}), joined: "shop/api",
		},
		"a user moves": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "b")}, left: all,
			want: attached(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("web", "b")}
			}),
		},
		"the binding of a user was made anew": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "a", func(u *dependency.User) { u.ID = "id-2" })}, left: all,
			want: attached(func(b *workv1alpha2.ResourceBinding) { b.Labels[label("web")] = "id-2" }),
		},
		"the last user leaves": {object: settings(t), binding: attached(), left: all, released: "shop/web"},
		"the last user runs nowhere any more": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "")}, left: all, want: nil, released: "shop/web",
		},
		"a user of which nothing is known": {object: settings(t), binding: attached(overwrite), want: attached(overwrite)},
		"a user of which nothing is known, and another one": {
			object: settings(t), binding: attached(overwrite), users: []dependency.User{user("api", "b")},
			want: attached(overwrite, func(b *workv1alpha2.ResourceBinding) {
				b.Labels[label("api")] = "id-api"
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("api", "b"), snapshot("web", "a")}
			}), joined: "shop/api",
		},
		"users that agree": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "a", overwrites, preserves, reports)}, left: all,
			want: attached(overwrite, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.PreserveResourcesOnDeletion, b.Spec.Drift = ptr.To(true), policyv1alpha1.DriftReport
			}),
		},
		"users that do not agree": {
			object: settings(t), binding: attached(), users: []dependency.User{user("web", "a", overwrites, reports), user("api", "a", preserves)}, left: all,
			want: attached(overwrite, func(b *workv1alpha2.ResourceBinding) {
				b.Labels[label("api")] = "id-api"
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("api", "a"), snapshot("web", "a")}
				b.Spec.PreserveResourcesOnDeletion = ptr.To(true)
			}), joined: "shop/api",
			conflict: "conflictResolution is Overwrite for shop/web, but Abort for shop/api: Overwrite holds; " +
				"preserveResourcesOnDeletion is true for shop/api, but false for shop/web: true holds; " +
				"drift is Revert for shop/api, but Report for shop/web: Revert holds",
		},
		"who left takes along what only it wanted": {
			object: settings(t), binding: attached(overwrite, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = append(b.Spec.RequiredBy, snapshot("x", "b"))
			}), users: []dependency.User{user("web", "a")}, left: all,
			want: attached(), released: "shop/x",
		},
		"a policy governs: users add clusters": {
			object: settings(t), binding: attached(governed, alone), users: []dependency.User{user("web", "a", overwrites)}, left: all,
			want: attached(governed), joined: "shop/web",
		},
		"a policy governs: users leave":   {object: settings(t), binding: attached(governed), left: all, want: attached(governed, alone), released: "shop/web"},
		"a policy governs, and nobody":    {object: settings(t), binding: attached(governed, alone), left: all, want: attached(governed, alone)},
		"somebody else made the binding":  {object: settings(t), binding: attached(alone, managed), users: []dependency.User{user("web", "a", overwrites)}, want: attached(managed), joined: "shop/web"},
		"a binding that nobody explains":  {object: settings(t), binding: attached(alone), left: all, want: attached(alone)},
		"a label that nothing stands for": {object: settings(t), binding: attached(func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = nil }), left: all},
		"let go by its policy while users need it: edits reach them": {
			object: settings(t), binding: attached(released), users: []dependency.User{user("web", "a")}, left: all,
			want: attached(released, func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }),
		},
		"let go by its policy, then by its users: it stays as it is now": {
			object: settings(t), binding: attached(released, func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }), left: all,
			want:     attached(released, alone, func(b *workv1alpha2.ResourceBinding) { b.Annotations[propagation.DigestAnnotation] = digest }),
			released: "shop/web",
		},
		"the object was made anew": {
			object: newest, binding: attached(), users: []dependency.User{user("web", "a")}, left: all,
			want: attached(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Resource.UID, b.Spec.Resource.ResourceVersion, b.OwnerReferences[0].UID = "cm-2", "9", "cm-2"
			}),
		},
		"the object changed: nothing is written about that": {
			object:  object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: cm-1, resourceVersion: "77"}, data: {a: c}}`),
			binding: attached(), users: []dependency.User{user("web", "a")}, left: all, want: attached(),
		},
		"a label from when its key was made otherwise goes over to the key of today": {
			object: settings(t), binding: attached(func(b *workv1alpha2.ResourceBinding) {
				delete(b.Labels, label("web"))
				b.Labels[workv1alpha2.DependedByLabelPrefix+workv1alpha2.FormerBindingReferenceKey("shop", "web")] = "id-web"
			}),
			want: attached(),
		},
		"the object is not known: who needs it is brought up to date all the same": {
			binding: attached(), users: []dependency.User{user("web", "b", overwrites)}, left: all,
			want: attached(overwrite, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{snapshot("web", "b")}
			}),
		},
		"a user of another namespace does not have it take the place of what is there": {
			binding: attached(), left: all, users: []dependency.User{user("web", "a"), user("x", "a", overwrites, func(u *dependency.User) { u.Namespace = "bank" })},
			want: attached(func(b *workv1alpha2.ResourceBinding) {
				b.Labels[workv1alpha2.DependedByLabelPrefix+workv1alpha2.BindingReferenceKey("bank", "x")] = "id-x"
				other := snapshot("x", "a")
				other.Namespace = "bank"
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{other, snapshot("web", "a")}
			}), joined: "bank/x",
		},
		"neither the object nor a binding is known": {users: []dependency.User{user("web", "a")}},
		"the object is not known":                   {binding: attached(), left: all, released: "shop/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := dependency.Case{Object: tc.object, Users: tc.users, Left: tc.left, NewID: func() string { return "new" }}
			var before *workv1alpha2.ResourceBinding
			if tc.binding != nil {
				c.Binding, before = tc.binding, tc.binding.DeepCopy()
			}
			d := dependency.Decide(c)
			var want workv1alpha2.Binding
			if tc.want != nil {
				want = tc.want
			}
			if diff := cmp.Diff(want, d.Binding); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{tc.joined, tc.released, tc.conflict}, []string{words(d.Joined), words(d.Released), d.Conflict}); diff != "" {
				t.Errorf("joined, parted, conflict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.binding); diff != "" {
				t.Errorf("the binding of today was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func overwrite(b *workv1alpha2.ResourceBinding) {
	b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
}

func managed(b *workv1alpha2.ResourceBinding) {
	b.Labels[workv1alpha2.BindingManagedByLabel] = "MultiClusterService"
}

func words(refs []dependency.Ref) string {
	var out []string
	for _, ref := range refs {
		out = append(out, ref.String())
	}
	return strings.Join(out, " ")
}

// TestScopes: bindings of both scopes are one piece of code.
func TestScopes(t *testing.T) {
	role := object(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast, uid: sc-1, resourceVersion: "5"}}`)
	u := user("web", "a")
	wide := dependency.User{Ref: dependency.Ref{Name: "plan-tenant"}, ID: "id-plan", Clusters: []string{"b"}}
	d := dependency.Decide(dependency.Case{Object: role, Users: []dependency.User{u, wide}, NewID: func() string { return "new" }})
	want := &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "fast-storageclass",
			Labels: map[string]string{
				workv1alpha2.ClusterResourceBindingPermanentIDLabel: "new", label("web"): "id-web",
				workv1alpha2.DependedByLabelPrefix + workv1alpha2.SafeHash("plan-tenant"): "id-plan",
			},
			Finalizers:      []string{workv1alpha2.ClusterResourceBindingControllerFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: "fast", UID: "sc-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass", Name: "fast", UID: "sc-1", ResourceVersion: "5"},
			RequiredBy: []workv1alpha2.BindingSnapshot{
				{Name: "plan-tenant", Clusters: []workv1alpha2.TargetCluster{{Name: "b"}}}, snapshot("web", "a"),
			},
			ConflictResolution: policyv1alpha1.ConflictAbort,
		},
	}
	if diff := cmp.Diff(workv1alpha2.Binding(want), d.Binding); diff != "" {
		t.Errorf("binding (-want +got):\n%s", diff)
	}
}

// FuzzDecide lets users come and go in any order: what is decided depends on who
// is there, and on nothing else.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, uint64(1))
	f.Add([]byte{1, 0x13, 0xff, 0x80, 7}, uint64(2))
	f.Add([]byte{2, 0x21, 0x42, 0xe3}, uint64(3))
	f.Add([]byte{3, 0x21, 0x42, 0xe3, 0, 0x10}, uint64(4))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		if len(data) == 0 || len(data) > 40 {
			t.Skip()
		}
		start, users := situation(data)
		obj, newID := settings(t), func() string { return "new" }
		decide := func(b workv1alpha2.Binding, users []dependency.User) dependency.Decision {
			return dependency.Decide(dependency.Case{Object: obj, Binding: b, Users: users, Left: all, NewID: newID})
		}
		once := decide(start, users)
		order := rand.New(rand.NewPCG(seed, seed))
		shuffled := slices.Clone(users)
		order.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(once, decide(start, shuffled)); diff != "" {
			t.Fatalf("another order decides otherwise (-want +got):\n%s", diff)
		}
		step := start
		for i := range shuffled {
			step = decide(step, shuffled[:i+1]).Binding
		}
		if diff := cmp.Diff(once.Binding, step); diff != "" && len(users) > 0 {
			t.Fatalf("one by one is not at once (-want +got):\n%s", diff)
		}
		again := decide(once.Binding, users)
		if diff := cmp.Diff(once.Binding, again.Binding); diff != "" || len(again.Joined)+len(again.Released) > 0 {
			t.Fatalf("deciding twice is not deciding once (-want +got):\n%s", diff)
		}
		clustersAre(t, once.Binding, users)
		nobody := decide(once.Binding, nil).Binding
		if want := decide(start, nil).Binding; start != nil && !cmp.Equal(want, nobody) || start == nil && nobody != nil {
			t.Fatalf("what is left once all are gone (-want +got):\n%s", cmp.Diff(want, nobody))
		}
	})
}

// clustersAre errs unless b is needed where the users run, and nowhere else.
func clustersAre(t *testing.T, b workv1alpha2.Binding, users []dependency.User) {
	t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for _, u := range users {
		for _, c := range u.Clusters {
			want[c] = true
		}
	}
	labels := 0
	if b != nil {
		for _, by := range b.BindingSpec().RequiredBy {
			for _, c := range by.Clusters {
				got[c.Name] = true
			}
		}
		for key := range maps.Keys(b.GetLabels()) {
			if strings.HasPrefix(key, workv1alpha2.DependedByLabelPrefix) {
				labels++
			}
		}
		if labels != len(b.BindingSpec().RequiredBy) {
			t.Fatalf("%d labels for %d users", labels, len(b.BindingSpec().RequiredBy))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("clusters (-want +got):\n%s", diff)
	}
}

// situation reads a binding of today and users from bytes: each user has one,
// with a bit for each of five clusters and for each of its wishes.
func situation(data []byte) (workv1alpha2.Binding, []dependency.User) {
	var start workv1alpha2.Binding
	switch data[0] % 4 {
	case 1:
		start = attached(governed, alone)
	case 2:
		start = attached(released, alone, func(b *workv1alpha2.ResourceBinding) {
			obj := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "settings"}, "data": map[string]any{"a": "b"},
			}}
			b.Annotations[propagation.DigestAnnotation], _ = propagation.Digest(obj)
		})
	case 3:
		start = attached(alone, managed)
	}
	var users []dependency.User
	for i, bits := range data[1:] {
		u := user(string(rune('a'+i)), "")
		for c := range 5 {
			if bits>>c&1 == 1 {
				u.Clusters = append(u.Clusters, string(rune('a'+c)))
			}
		}
		u.Overwrites, u.Preserves, u.Reports = bits>>5&1 == 1, bits>>6&1 == 1, bits>>7 == 1
		users = append(users, u)
	}
	return start, users
}
