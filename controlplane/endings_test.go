package controlplane_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestALoopEndsInOneWriteWhatItAloneHolds: a Work that is deleted so is gone, and was not
// marked before. For all others a finalizer means what it always does.
func TestALoopEndsInOneWriteWhatItAloneHolds(t *testing.T) {
	env := shared.Env(t)
	admin := administrator(t, env)
	for _, obj := range guardedCluster("ending") {
		remove(t, env.Hub, obj.DeepCopyObject().(client.Object))
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	const own, another = workv1alpha2.ExecutionControllerFinalizer, "example.com/another"
	now := client.GracePeriodSeconds(0)
	this := func(w *workv1alpha1.Work) client.DeleteOption {
		return client.Preconditions{UID: ptr.To(w.UID), ResourceVersion: ptr.To(w.ResourceVersion)}
	}
	type options = func(w *workv1alpha1.Work) []client.DeleteOption
	for name, tc := range map[string]struct {
		by     client.Client
		holds  []string
		opts   options
		edited bool // by somebody, after it was read
		want   string
	}{
		"a loop that holds it": {by: env.Hub, holds: []string{own}, opts: func(w *workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{now, this(w)} }, want: "gone"},
		"a trial": {by: env.Hub, holds: []string{own}, opts: func(w *workv1alpha1.Work) []client.DeleteOption {
			return []client.DeleteOption{now, this(w), client.DryRunAll}
		}, want: "there"},
		"a loop that asks for its end":         {by: env.Hub, holds: []string{own}, opts: func(w *workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{this(w)} }, want: "marked"},
		"a loop that does not say which":       {by: env.Hub, holds: []string{own}, opts: func(*workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{now} }, want: "marked"},
		"a loop, while somebody else holds it": {by: env.Hub, holds: []string{own, another}, opts: func(w *workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{now, this(w)} }, want: "marked"},
		"a loop, of what was written since":    {by: env.Hub, holds: []string{own}, opts: func(w *workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{now, this(w)} }, edited: true, want: "there"},
		"an administrator":                     {by: admin, holds: []string{own}, opts: func(w *workv1alpha1.Work) []client.DeleteOption { return []client.DeleteOption{now, this(w)} }, want: "marked"},
	} {
		t.Run(name, func(t *testing.T) {
			w := plainWork("ending", "w")
			w.Finalizers = tc.holds
			if err := env.Hub.Create(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { release(t, env.Hub, w) })
			if tc.edited {
				changed := w.DeepCopy()
				changed.Annotations = map[string]string{"a": "b"}
				if err := env.Hub.Update(t.Context(), changed); err != nil {
					t.Fatal(err)
				}
			}
			err := tc.by.Delete(t.Context(), w.DeepCopy(), tc.opts(w)...)
			if (err != nil) != tc.edited || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("deleted: %v", err)
			}
			is, got := &workv1alpha1.Work{}, "there"
			switch err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(w), is); {
			case apierrors.IsNotFound(err):
				got = "gone"
			case err != nil:
				t.Fatal(err)
			case !is.DeletionTimestamp.IsZero():
				got = "marked"
			}
			if got != tc.want {
				t.Errorf("it is %s, want it %s", got, tc.want)
			}
		})
	}
}

// release ends a Work, whoever holds it.
func release(t *testing.T, hub client.Client, w *workv1alpha1.Work) {
	t.Helper()
	err := hub.Patch(context.WithoutCancel(t.Context()), w.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	if err := hub.Delete(context.WithoutCancel(t.Context()), w.DeepCopy()); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}
