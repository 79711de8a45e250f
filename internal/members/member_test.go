package members_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

var shared servertest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// log keeps what a registry tells.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, got := range l.lines {
		if got == line {
			n++
		}
	}
	return n
}

func (l *log) Proven(cluster string)                        { l.add("proven " + cluster) }
func (l *log) KindsChanged(cluster string)                  { l.add("kinds " + cluster) }
func (l *log) Synced(_ string, gvk schema.GroupVersionKind) { l.add("synced " + gvk.Kind) }
func (l *log) Changed(_ string, o *members.Observed)        { l.add("changed " + o.Name) }
func target(env *servertest.Env, name, id string) members.Target {
	return members.Target{Name: name, ID: id, Config: env.Config}
}

// registry runs a registry until the test ends.
func registry(t *testing.T) (*members.Registry, *log) {
	t.Helper()
	reported := &log{}
	return start(t, members.New(members.Options{Interpreter: interpreter.Native()}), reported), reported
}

// start runs r until the test ends.
func start(t *testing.T, r *members.Registry, reported *log) *members.Registry {
	t.Helper()
	r.Handle(reported)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return r
}

// joined returns a member that has proved itself.
func joined(t *testing.T) (*servertest.Env, *members.Member, *log) {
	t.Helper()
	env := shared.Env(t)
	r, reported := registry(t)
	m, err := r.Connect(target(env, "eu-1", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	return env, m, reported
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

func managed(namespace, name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"namespace": namespace, "name": name,
			"labels":      map[string]any{workv1alpha2.ManagedByKarmadaLabel: "true"},
			"annotations": map[string]any{workv1alpha2.WorkNamespaceAnnotation: "karmada-es-eu-1", workv1alpha2.WorkNameAnnotation: name},
		},
		"data": data,
	}}
}

var configMap = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func TestAnotherClusterIsNotTrusted(t *testing.T) {
	env := shared.Env(t)
	r, reported := registry(t)
	system := &corev1.Namespace{}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	m, err := r.Connect(target(env, "eu-1", "another-id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrOtherCluster) {
		t.Errorf("Prove = %v, want %v", err, members.ErrOtherCluster)
	}
	if _, ok := r.Get("eu-1"); ok || reported.count("proven eu-1") != 0 {
		t.Error("another cluster is trusted")
	}
	m, err = r.Connect(target(env, "eu-1", string(system.UID)))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Get("eu-1"); ok {
		t.Error("a cluster is trusted before it proved itself")
	}
	if err := m.Prove(t.Context()); err != nil {
		t.Errorf("Prove = %v", err)
	}
	if got, ok := r.Get("eu-1"); !ok || got != m || reported.count("proven eu-1") != 1 {
		t.Error("the registered cluster is not trusted")
	}
	r.Disconnect("eu-1")
	if _, ok := r.Get("eu-1"); ok {
		t.Error("a member that was let go is still there")
	}
}

func TestAConnectionIsKeptUntilSomethingChanges(t *testing.T) {
	env := shared.Env(t)
	r, _ := registry(t)
	connect := func(change func(*members.Target)) *members.Member {
		t.Helper()
		to := target(env, "eu-1", "")
		to.Config = rest.CopyConfig(to.Config)
		change(&to)
		m, err := r.Connect(to)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := connect(func(*members.Target) {})
	if connect(func(*members.Target) {}) != first {
		t.Error("an equal target makes a new connection")
	}
	for name, change := range map[string]func(*members.Target){
		"token": func(to *members.Target) { to.Config.BearerToken = "new" },
		"route": func(to *members.Target) { to.Route = "socks5://proxy" },
	} {
		if connect(change) != first {
			t.Errorf("another %s makes a new connection", name)
		}
	}
	for name, change := range map[string]func(*members.Target){
		"address":  func(to *members.Target) { to.Config.Host = "https://127.0.0.1:1" },
		"identity": func(to *members.Target) { to.ID = "new" },
	} {
		if connect(change) == first {
			t.Errorf("another %s makes no new connection", name)
		}
		first = connect(func(*members.Target) {})
	}
}

func TestApplyAndRead(t *testing.T) {
	env, m, reported := joined(t)
	ns := env.Namespace(t)
	key := types.NamespacedName{Namespace: ns, Name: "cm"}
	if _, presence := m.Read(configMap, key); presence != members.Unknown {
		t.Errorf("presence = %v before the list is complete, want unknown", presence)
	}
	applied, err := m.Apply(t.Context(), managed(ns, "cm", map[string]any{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if read, presence := m.Read(configMap, key); presence != members.Present || read.Owned != applied.Owned {
		t.Errorf("an own write reads as %v, %v", read, presence)
	}
	eventually(t, "the watch has it", func() error {
		if reported.count("synced ConfigMap") == 0 || reported.count("changed cm") == 0 {
			return errors.New("the watch has told nothing yet")
		}
		return nil
	})
	if _, presence := m.Read(configMap, types.NamespacedName{Namespace: ns, Name: "none"}); presence != members.Absent {
		t.Errorf("presence = %v of what was never there, want absent", presence)
	}
	// A field of somebody else's is none of ours; one of ours is.
	theirs := &corev1.ConfigMap{}
	if err := env.Hub.Get(t.Context(), key, theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Data["b"] = "2"
	if err := env.Hub.Update(t.Context(), theirs, client.FieldOwner("them")); err != nil {
		t.Fatal(err)
	}
	theirs.Data["a"] = "changed"
	if err := env.Hub.Update(t.Context(), theirs, client.FieldOwner("them")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the drift is seen", func() error {
		read, presence := m.Read(configMap, key)
		if presence != members.Present || read.Owned == applied.Owned || read.ResourceVersion != theirs.ResourceVersion {
			return fmt.Errorf("%v %v", read, presence)
		}
		return nil
	})
	again, err := m.Apply(t.Context(), managed(ns, "cm", map[string]any{"a": "1"}))
	if err != nil || again.Owned != applied.Owned {
		t.Errorf("after the correction: %v, %v", again, err)
	}
	if gone, err := m.Delete(t.Context(), configMap, key, "another", metav1.DeletePropagationBackground); gone || !apierrors.IsConflict(err) {
		t.Errorf("delete of another object = %t, %v, want a conflict", gone, err)
	}
	if gone, err := m.Delete(t.Context(), configMap, key, applied.UID, metav1.DeletePropagationBackground); !gone || err != nil {
		t.Fatalf("delete = %t, %v", gone, err)
	}
	eventually(t, "it is seen gone", func() error {
		if _, presence := m.Read(configMap, key); presence != members.Absent {
			return fmt.Errorf("presence %v", presence)
		}
		return nil
	})
	if gone, err := m.Delete(t.Context(), configMap, key, applied.UID, metav1.DeletePropagationBackground); !gone || err != nil {
		t.Errorf("delete of what is gone: %t, %v", gone, err)
	}
}

func TestWhatIsAppliedAsNewLeavesWhatIsThereAlone(t *testing.T) {
	env, m, _ := joined(t)
	ns := env.Namespace(t)
	ship := func(name, value string) *unstructured.Unstructured {
		out := managed(ns, name, map[string]any{"a": value})
		out.SetResourceVersion(members.OnlyNew)
		return out
	}
	made, err := m.Apply(t.Context(), ship("cm", "1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(t.Context(), ship("cm", "2")); !apierrors.IsConflict(err) {
		t.Errorf("over an object of ours: %v, want a conflict", err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "theirs"}}
	if err := env.Hub.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(t.Context(), ship("theirs", "2")); !apierrors.IsConflict(err) {
		t.Errorf("over an object of somebody else's: %v, want a conflict", err)
	}
	again, err := m.Apply(t.Context(), managed(ns, "cm", map[string]any{"a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if made.Owned != again.Owned || made.ResourceVersion != again.ResourceVersion {
		t.Errorf("made as %v, applied as %v", made, again)
	}
	after := &corev1.ConfigMap{}
	if err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(theirs), after); err != nil || after.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("somebody else's: %v, %v", after, err)
	}
}

func TestANamespaceThatIsMissingIsNamed(t *testing.T) {
	_, m, _ := joined(t)
	if _, err := m.Apply(t.Context(), managed("nowhere", "cm", nil)); !errors.Is(err, members.ErrNoNamespace) {
		t.Errorf("error = %v, want %v", err, members.ErrNoNamespace)
	}
}

func TestAKindThatComesAndGoes(t *testing.T) {
	env, m, _ := joined(t)
	gvk := schema.GroupVersionKind{Group: "test.flotilla.io", Version: "v1", Kind: "Ship"}
	ship := managed("default", "one", nil)
	ship.SetGroupVersionKind(gvk)
	key := types.NamespacedName{Namespace: "default", Name: "one"}
	if _, err := m.Apply(t.Context(), ship.DeepCopy()); !errors.Is(err, members.ErrNotServed) {
		t.Fatalf("error = %v, want %v", err, members.ErrNotServed)
	}
	eventually(t, "the kind is known not to be served", func() error {
		if o, presence := m.Read(gvk, key); presence != members.Unserved {
			return fmt.Errorf("%v %v", o, presence)
		}
		return nil
	})
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "ships.test.flotilla.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Singular: "ship", Kind: gvk.Kind, ListKind: "ShipList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
	if err := env.Hub.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is served", func() error {
		_, err := m.Apply(t.Context(), ship.DeepCopy())
		return err
	})
	m.KindsChanged() // as the cluster loop tells it
	eventually(t, "the watch follows", func() error {
		if o, presence := m.Read(gvk, types.NamespacedName{Namespace: "default", Name: "two"}); presence != members.Absent {
			return fmt.Errorf("%v %v", o, presence)
		}
		return nil
	})
	if err := env.Hub.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is known to be gone", func() error {
		if o, presence := m.Read(gvk, key); presence != members.Unserved {
			return fmt.Errorf("%v %v", o, presence)
		}
		return nil
	})
	if _, presence := m.Read(configMap, types.NamespacedName{Namespace: "default", Name: "none"}); presence == members.Present {
		t.Errorf("presence = %v of another kind", presence)
	}
}
