package controlplane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
)

// seen is what a watch tells of one object.
type seen struct {
	event  watch.EventType
	object runtime.Object
}

// TestAWatchInProcessShowsWhatARequestDoes compares every event of every kind that is watched in process: of objects
// that are there, and of all that may happen to them.
func TestAWatchInProcessShowsWhatARequestDoes(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	hub, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	raw := runtime.RawExtension{Raw: []byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "<&>"}}`)}
	spec := workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "c"}}
	for name, c := range map[string]struct {
		first, second client.Object
		list          client.ObjectList
	}{
		"Works": {&workv1alpha1.Work{Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: raw}}}}},
			&workv1alpha1.Work{}, &workv1alpha1.WorkList{}},
		"bindings":         {&workv1alpha2.ResourceBinding{Spec: spec}, &workv1alpha2.ResourceBinding{Spec: spec}, &workv1alpha2.ResourceBindingList{}},
		"cluster bindings": {&workv1alpha2.ClusterResourceBinding{Spec: spec}, &workv1alpha2.ClusterResourceBinding{Spec: spec}, &workv1alpha2.ClusterResourceBindingList{}},
	} {
		t.Run(name, func(t *testing.T) {
			c.first.SetName("watched-first")
			c.second.SetName("watched-second")
			for _, obj := range []client.Object{c.first, c.second} {
				if name != "cluster bindings" {
					obj.SetNamespace(namespace)
				}
				remove(t, env.Hub, obj)
			}
			if err := env.Hub.Create(t.Context(), c.first); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			options := metav1.ListOptions{AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
			requested, err := hub.Watch(ctx, c.list, &client.ListOptions{Raw: options.DeepCopy()})
			if err != nil {
				t.Fatal(err)
			}
			watched, err := env.Watch(ctx, c.first, options)
			if err != nil {
				t.Fatal(err)
			}
			want, got := until(t, requested, watch.Bookmark), until(t, watched, watch.Bookmark)
			live(t, env.Hub, c.second)
			want, got = append(want, until(t, requested, watch.Deleted)...), append(got, until(t, watched, watch.Deleted)...)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("events (-request +in process):\n%s", diff)
			}
			if len(got) < 6 {
				t.Errorf("%d events", len(got))
			}
			watched.Stop()
			for range watched.ResultChan() { // until it is closed
			}
		})
	}
}

// until returns what a watch tells of these tests' objects until an event of a type. Of a bookmark the version is not compared: each
// watch has its own.
func until(t *testing.T, w watch.Interface, last watch.EventType) []seen {
	t.Helper()
	var out []seen
	for event := range w.ResultChan() {
		obj, ok := event.Object.(client.Object)
		if !ok {
			t.Fatalf("%s: %v", event.Type, event.Object)
		}
		if event.Type == watch.Bookmark {
			obj.SetResourceVersion("")
		} else if name := obj.GetName(); name != "watched-first" && name != "watched-second" {
			continue
		}
		obj.SetManagedFields(nil)
		out = append(out, seen{event.Type, obj})
		if event.Type == last {
			return out
		}
	}
	t.Fatalf("the watch ended after %d events", len(out))
	return nil
}

// live has an object made, changed, its status written, marked as being deleted, and removed.
func live(t *testing.T, hub client.Client, obj client.Object) {
	t.Helper()
	patch := func(kind types.PatchType, data string) error {
		return hub.Patch(t.Context(), obj, client.RawPatch(kind, []byte(data)))
	}
	for _, step := range []func() error{
		func() error { obj.SetFinalizers([]string{"flotilla.test/held"}); return hub.Create(t.Context(), obj) },
		func() error { return patch(types.MergePatchType, `{"metadata":{"annotations":{"a":"<&>"}}}`) },
		func() error {
			return hub.Status().Patch(t.Context(), obj, client.RawPatch(types.MergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"A","status":"True","reason":"B","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)))
		},
		func() error { return hub.Delete(t.Context(), obj) },
		func() error { return patch(types.MergePatchType, `{"metadata":{"finalizers":null}}`) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatIsNotWatchedInProcess is all else: it is left to requests.
func TestWhatIsNotWatchedInProcess(t *testing.T) {
	env := shared.Env(t)
	for name, c := range map[string]struct {
		of      runtime.Object
		options metav1.ListOptions
	}{
		"another kind":       {&corev1.Secret{}, metav1.ListOptions{}},
		"a part by a label":  {&workv1alpha1.Work{}, metav1.ListOptions{LabelSelector: "a=b"}},
		"a part by a field":  {&workv1alpha1.Work{}, metav1.ListOptions{FieldSelector: "metadata.name=w"}},
		"metadata of a kind": {&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: workv1alpha1.GroupVersion.String(), Kind: "Work"}}, metav1.ListOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := env.Watch(t.Context(), c.of, c.options); !errors.Is(err, aggregated.ErrNotWatched) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestAWatchInProcessEndsInTime: informers ask for an end, so that they spread over replicas.
func TestAWatchInProcessEndsInTime(t *testing.T) {
	env := shared.Env(t)
	w, err := env.Watch(t.Context(), &workv1alpha1.Work{}, metav1.ListOptions{TimeoutSeconds: ptr.To[int64](1), ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range w.ResultChan() { // until it is closed
	}
}
