package fluxfields_test

import (
	"context"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/apply"
	"github.com/flotilla-io/flotilla/reconciler/apply/builder"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/commitstatus/poster"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/bucket"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/forge"
	"github.com/flotilla-io/flotilla/sources/ocirepository"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// refusal has a loop work on an object of this spec, and returns what the loop says if it refuses what
// the spec asks for; empty if it does not.
type refusal func(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string

var key = client.ObjectKey{Namespace: "team", Name: "name"}

// object returns one of the spec.
func object[T any](t *testing.T, spec map[string]any) *T {
	t.Helper()
	out := new(T)
	content := map[string]any{"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name}, "spec": spec}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, out, true); err != nil {
		t.Fatal(err)
	}
	return out
}

// work has a loop look once at the object, and reads what that made of it.
func work(t *testing.T, hub client.Client, loop reconcile.Reconciler, of client.Object) {
	t.Helper()
	_, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		t.Logf("%v", err) // it may have come as far as to what is not there
	}
	if err := hub.Get(t.Context(), key, of); err != nil {
		t.Fatal(err)
	}
}

// messageOf returns what a condition says, if it has the reason.
func messageOf(conditions []metav1.Condition, condition, reason string) string {
	if c := apimeta.FindStatusCondition(conditions, condition); c != nil && c.Reason == reason {
		return c.Message
	}
	return ""
}

type nobody struct{}

func (nobody) Event(runtime.Object, string, string, string) {}

func ofRepository(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string {
	t.Helper()
	of := object[sourcev1.GitRepository](t, spec)
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(of).WithStatusSubresource(of).Build()
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	work(t, hub, repository.New(hub, store, nobody{}, repository.Options{}), of)
	return messageOf(of.Status.Conditions, "Stalled", fetching.ReasonUnsupported)
}

func ofOCIRepository(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string {
	t.Helper()
	of := object[sourcev1.OCIRepository](t, spec)
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(of).WithStatusSubresource(of).Build()
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	work(t, hub, ocirepository.New(hub, store, nobody{}, ocirepository.Options{}), of)
	return messageOf(of.Status.Conditions, "Stalled", fetching.ReasonUnsupported)
}

func ofBucket(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string {
	t.Helper()
	of := object[sourcev1.Bucket](t, spec)
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(of).WithStatusSubresource(of).Build()
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	work(t, hub, bucket.New(hub, store, nobody{}, bucket.Options{}), of)
	return messageOf(of.Status.Conditions, "Stalled", fetching.ReasonUnsupported)
}

func ofKustomization(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string {
	t.Helper()
	of := object[kustomizev1.Kustomization](t, spec)
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(of).WithStatusSubresource(of).Build()
	store, err := artifact.NewStore(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	loop, err := apply.New(apply.Deps{
		Hub: hub, Live: hub, Config: &rest.Config{Host: "127.0.0.1:1"}, Events: nobody{},
		Builder: builder.New(store, build.New(build.Limits{}), builder.Options{}),
	}, apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	work(t, hub, loop, of)
	return messageOf(of.Status.Conditions, "Stalled", kustomizations.ReasonNotSupported)
}

// forges take everything.
type forges struct{}

func (forges) Post(context.Context, forge.Status) error { return nil }

func ofProvider(t *testing.T, kinds *runtime.Scheme, spec map[string]any) string {
	t.Helper()
	of := &gitopsv1alpha1.CommitStatus{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}}
	of.Spec.ProviderRef.Name, of.Spec.State = key.Name, gitopsv1alpha1.CommitSuccess
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	hub := fake.NewClientBuilder().WithScheme(kinds).WithObjects(of, secret, object[notificationv1beta3.Provider](t, spec)).WithStatusSubresource(of).Build()
	work(t, hub, poster.New(hub, hub, poster.Options{
		Connect: func(forge.Provider, time.Duration) (forge.Poster, error) { return forges{}, nil },
	}), of)
	return messageOf(of.Status.Conditions, gitopsv1alpha1.CommitStatusSynced, gitopsv1alpha1.CommitStatusReasonProviderNotReady)
}
