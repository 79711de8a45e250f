package kustomizations

import (
	"errors"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

func TestWhatIsGoneIsNotReadFromOwnWrites(t *testing.T) {
	own := New(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), nil, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", ResourceVersion: "7"}}
	found := func() bool {
		_, found, err := own.Read(t.Context(), client.ObjectKeyFromObject(ks))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	own.written.Wrote(ks)
	if !found() {
		t.Error("what was just written is not there")
	}
	if !own.ForgetDeleted().Delete(event.DeleteEvent{Object: ks}) {
		t.Error("an end is not looked into")
	}
	if found() {
		t.Error("what is gone is still there")
	}
}

// A status has two writers, whose lists replace each other: the Kustomization itself, and one that deletes it.
func TestPublish(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*kustomizev1.Kustomization)
		conflicts bool
	}{
		"nothing else is written":   {meanwhile: func(*kustomizev1.Kustomization) {}},
		"somebody annotates it":     {meanwhile: func(ks *kustomizev1.Kustomization) { ks.Annotations = map[string]string{"reconcile": "now"} }},
		"somebody changes the spec": {meanwhile: func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }},
		"another one writes the status": {conflicts: true, meanwhile: func(ks *kustomizev1.Kustomization) {
			ks.Status.History = meta.History{{Digest: "sha256:1", Metadata: map[string]string{gitopsv1alpha1.UndecidedKey: "team_web__ConfigMap"}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: "1"}}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithStatusSubresource(before).WithObjects(before).Build()
			read := func() *kustomizev1.Kustomization {
				ks := &kustomizev1.Kustomization{}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(before), ks); err != nil {
					t.Fatal(err)
				}
				return ks
			}
			before = read()
			changed := before.DeepCopy()
			tc.meanwhile(changed)
			if err := hub.Update(t.Context(), changed.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			stored := read()
			stored.Status = changed.Status
			if err := hub.Status().Update(t.Context(), stored); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			after.Status.History = meta.History{{Digest: "sha256:2"}}
			own := New(hub, hub, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
			err := own.PatchStatus(t.Context(), before, after)
			if errors.Is(err, ErrChanged) != tc.conflicts || err != nil && !tc.conflicts {
				t.Errorf("it ended with %v", err)
			}
			want := stored
			if !tc.conflicts {
				want.Status = after.Status
			}
			if diff := cmp.Diff(want, read(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion")); diff != "" {
				t.Errorf("what stands then (-want +got):\n%s", diff)
			}
		})
	}
}
