package execution_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestTakenOutOfAWork removes manifests from Works that people wrote, and renames
// others: the former objects are removed, even if the loops or the member were down meanwhile.
func TestTakenOutOfAWork(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a control plane and a member")
	}
	t.Parallel()
	f := newFleet(t)
	testJoin(t, f)
	testNamespace(t, f)
	for _, step := range []struct {
		name string
		run  func(*testing.T, *fleet)
	}{
		{"a manifest is taken out", func(t *testing.T, f *fleet) {
			f.write(t, "plain", "a", "b")
			f.has(t, "plain", "a", "b")
			f.write(t, "plain", "b")
			f.has(t, "plain", "b")
		}},
		{"a manifest changes its name", func(t *testing.T, f *fleet) {
			f.write(t, "renamed", "old")
			f.has(t, "renamed", "old")
			f.write(t, "renamed", "new")
			f.has(t, "renamed", "new")
		}},
		{"while the loops are away", func(t *testing.T, f *fleet) {
			f.write(t, "restart", "c", "d")
			f.has(t, "restart", "c", "d")
			f.stopLoops()
			f.write(t, "restart", "d")
			f.startLoops()
			f.has(t, "restart", "d")
		}},
		{"while the loops are away, and the Work goes", func(t *testing.T, f *fleet) {
			f.write(t, "whole", "e", "f")
			f.has(t, "whole", "e", "f")
			f.stopLoops()
			f.write(t, "whole", "f")
			if err := f.hub.Hub.Delete(t.Context(), byHand("whole")); err != nil {
				t.Fatal(err)
			}
			f.startLoops()
			f.has(t, "whole")
		}},
		{"what another Work asks for stays, and is its own", func(t *testing.T, f *fleet) {
			f.write(t, "first", "g", "h")
			f.has(t, "first", "g", "h")
			uid := f.config(t, "g").UID
			f.write(t, "second", "g")
			f.write(t, "first", "h")
			f.has(t, "second", "g")
			f.has(t, "first", "h")
			if is := f.config(t, "g").UID; is != uid {
				t.Errorf("it was made anew: %s, then %s", uid, is)
			}
		}},
		{"what says that it is another's is left alone", func(t *testing.T, f *fleet) {
			f.write(t, "mine", "i", "j")
			f.has(t, "mine", "i", "j")
			f.stopLoops()
			f.write(t, "mine", "j")
			theirs := f.config(t, "i")
			delete(theirs.Labels, workv1alpha2.ManagedByKarmadaLabel)
			if err := f.edge.Update(t.Context(), theirs); err != nil {
				t.Fatal(err)
			}
			f.startLoops()
			f.awaitApplied(t, "mine")
			if left := f.config(t, "i"); left.DeletionTimestamp != nil {
				t.Error("it is being deleted")
			}
		}},
		{"a finalizer keeps what goes", func(t *testing.T, f *fleet) {
			f.write(t, "kept", "m", "n")
			f.has(t, "kept", "m", "n")
			keeps := f.config(t, "m")
			keeps.Finalizers = []string{"example.com/wait"}
			if err := f.edge.Update(t.Context(), keeps); err != nil {
				t.Fatal(err)
			}
			if err := f.hub.Hub.Delete(t.Context(), byHand("kept")); err != nil {
				t.Fatal(err)
			}
			f.keeps(t, "kept", "m")
			f.stopLoops()
			f.startLoops()
			eventually(t, "the member was asked", func(context.Context) error {
				if keeps = f.config(t, "m"); keeps.DeletionTimestamp.IsZero() {
					return fmt.Errorf("it is not being deleted")
				}
				return nil
			})
			if err := f.hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(byHand("kept")), &workv1alpha1.Work{}); err != nil {
				t.Errorf("the Work: %v", err)
			}
			keeps.Finalizers = nil
			if err := f.edge.Update(t.Context(), keeps); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the Work goes with it", func(ctx context.Context) error {
				err := f.hub.Hub.Get(ctx, client.ObjectKeyFromObject(byHand("kept")), &workv1alpha1.Work{})
				if err == nil {
					return fmt.Errorf("it is there")
				}
				return client.IgnoreNotFound(err)
			})
		}},
		{"while the member is away", func(t *testing.T, f *fleet) {
			f.write(t, "away", "k", "l")
			f.has(t, "away", "k", "l")
			f.member.Stop()
			f.write(t, "away", "l")
			f.startMember()
			f.has(t, "away", "l")
		}},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(t, f) }) {
			return
		}
	}
}

func byHand(name string) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("eu-1"), Name: name}}
}

// write sets the manifests of a Work to these ConfigMaps.
func (f *fleet) write(t *testing.T, name string, configs ...string) {
	t.Helper()
	var manifests []workv1alpha1.Manifest
	for _, config := range configs {
		raw := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q},"data":{"key":"1"}}`, config)
		manifests = append(manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		work := byHand(name)
		err := f.hub.Hub.Get(t.Context(), client.ObjectKeyFromObject(work), work)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		work.Spec.Workload.Manifests = manifests
		if err != nil {
			return f.hub.Hub.Create(t.Context(), work)
		}
		return f.hub.Hub.Update(t.Context(), work)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has waits until the member has these ConfigMaps of a Work, and no others, and the
// Work's status lists them.
func (f *fleet) has(t *testing.T, name string, want ...string) {
	t.Helper()
	f.keeps(t, name, want...)
	if len(want) > 0 {
		f.awaitApplied(t, name, want...)
	}
}

// keeps waits until the member has these ConfigMaps of a Work, and no others.
func (f *fleet) keeps(t *testing.T, name string, want ...string) {
	t.Helper()
	eventually(t, "the member has what is asked for", func(ctx context.Context) error {
		var list corev1.ConfigMapList
		if err := f.edge.List(ctx, &list, client.InNamespace("shop")); err != nil {
			return err
		}
		var got []string
		for _, c := range list.Items {
			if c.Annotations[workv1alpha2.WorkNameAnnotation] == name {
				got = append(got, c.Name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// awaitApplied waits until a Work is applied and its status lists these objects.
func (f *fleet) awaitApplied(t *testing.T, name string, want ...string) {
	t.Helper()
	eventually(t, "the Work says so", func(ctx context.Context) error {
		work := byHand(name)
		if err := f.hub.Hub.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		var got []string
		for _, s := range work.Status.ManifestStatuses {
			got = append(got, s.Identifier.Name)
		}
		if len(want) > 0 && !slices.Equal(got, want) || len(got) != len(work.Spec.Workload.Manifests) {
			return fmt.Errorf("it tells of %s", strings.Join(got, ", "))
		}
		return nil
	})
}

func (f *fleet) config(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	c := &corev1.ConfigMap{}
	if err := f.edge.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, c); err != nil {
		t.Fatal(err)
	}
	return c
}
