package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// What a client in the server's process reads is in memory once: what it gets is
// made of what the server has, and says what was read.
func TestObjectsAreSharedWithTheServer(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	work := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "w", Annotations: map[string]string{"a": "<&>"}},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{
			RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "<&>"}}`)},
		}}}},
	}
	binding := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "c"},
			Clusters: []workv1alpha2.TargetCluster{{Name: "eu-1"}},
		},
	}
	for _, obj := range []client.Object{work, binding} {
		remove(t, env.Hub, obj)
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		obj  client.Object
		part func(runtime.Object) any // an address within
	}{
		"a work":    {work, func(obj runtime.Object) any { return &obj.(*workv1alpha1.Work).Spec.Workload.Manifests[0].Raw[0] }},
		"a binding": {binding, func(obj runtime.Object) any { return &obj.(*workv1alpha2.ResourceBinding).Spec.Clusters[0] }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			read := func() client.Object {
				out := c.obj.DeepCopyObject().(client.Object)
				if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(c.obj), out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			first := read()
			// The server's own cache follows its store a moment later.
			poll(t, "wait until the server's cache has the object", func() bool { return env.Shared(t, first) != first })
			one, two := env.Shared(t, first), env.Shared(t, read())
			if diff := cmp.Diff([]runtime.Object{first, first}, []runtime.Object{one, two}); diff != "" {
				t.Errorf("what is shared is not what was read (-read +shared):\n%s", diff)
			}
			if c.part(one) != c.part(two) {
				t.Error("two copies have nothing in common")
			}
			for what, change := range map[string]func(client.Object){
				"another version": func(o client.Object) { o.SetResourceVersion("1") },
				"another object":  func(o client.Object) { o.SetUID("other") },
				"none":            func(o client.Object) { o.SetName("other") },
			} {
				other := read()
				change(other)
				if env.Shared(t, other) != other {
					t.Errorf("the server's cache has %s, which is taken for the object", what)
				}
			}
		})
	}
}
