package repository_test

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/hub"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestOnTheServer runs the loop against a real API server: which status the
// server accepts, what triggers a reconcile, and that polling writes nothing to
// the server.
func TestOnTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	env := servertest.New(t)
	b := newBench(t, repository.Options{})
	first := b.commit("one", map[string]string{"app.yaml": "a: 1\n"})
	namespace := env.Namespace(t)

	mgr, err := hub.NewManager(env.Config, scheme.New(), hub.Options{Log: logr.Discard(), SeveralPerProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := repository.New(mgr.GetClient(), b.store, mgr.GetEventRecorderFor("flotilla"), repository.Options{Git: git.Options{Egress: reach}}).Register(mgr); err != nil { //nolint:staticcheck // core/v1 Events
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	object := &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "app"},
		Spec: sourcev1.GitRepositorySpec{
			URL: b.git.URL("app"), Interval: metav1.Duration{Duration: time.Second}, Reference: &sourcev1.GitRepositoryRef{Branch: "main"},
		},
	}
	if err := env.Hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	// Another one includes it, and looks again only when it has another artifact.
	whole := object.DeepCopy()
	whole.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "whole"}
	whole.Spec.Interval = metav1.Duration{Duration: time.Hour}
	whole.Spec.Include = []sourcev1.GitRepositoryInclude{{GitRepositoryRef: meta.LocalObjectReference{Name: "app"}}}
	whole.Spec.Reference = &sourcev1.GitRepositoryRef{Commit: first}
	if err := env.Hub.Create(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	until := func(what string, is func() bool) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			err := env.Hub.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err == nil && is(), client.IgnoreNotFound(err)
		})
		if err != nil {
			t.Fatalf("%s: %v; conditions %v", what, err, conditions(object))
		}
	}
	has := func(commit string) func() bool {
		return func() bool {
			return object.Status.Artifact.HasRevision("main@sha1:"+commit) && apimeta.IsStatusConditionTrue(object.Status.Conditions, meta.ReadyCondition)
		}
	}
	until("the first artifact", has(first))
	until("the Event that follows it", func() bool {
		var reported corev1.EventList
		named := client.MatchingFields{"involvedObject.name": "app"}
		return env.Hub.List(t.Context(), &reported, client.InNamespace(namespace), named) == nil && len(reported.Items) == 1
	})
	until("that it is included", func() bool {
		err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(whole), whole)
		return err == nil && len(whole.Status.IncludedArtifacts) == 1 && whole.Status.IncludedArtifacts[0].Digest == object.Status.Artifact.Digest
	})

	quiet, asked := env.QuietRevision(t), b.git.Requests()
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return b.git.Requests() >= asked+3, nil
	})
	if err != nil {
		t.Fatalf("the loop does not poll: %v", err)
	}
	if written := env.Written(t, quiet); len(written) != 0 {
		t.Errorf("three polls of an unchanged repository wrote %v", written)
	}

	// With an interval this long, only a request triggers fetching the next
	// commit.
	longer := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"interval":"1h"}}`))
	if err := env.Hub.Patch(t.Context(), object, longer); err != nil {
		t.Fatal(err)
	}
	until("the new generation", func() bool { return object.Status.ObservedGeneration == object.Generation })
	second := b.commit("two", map[string]string{"app.yaml": "a: 2\n"})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+meta.ReconcileRequestAnnotation+`":"now"}}}`))
	if err := env.Hub.Patch(t.Context(), object, patch); err != nil {
		t.Fatal(err)
	}
	until("the second artifact", has(second))
	if object.Status.LastHandledReconcileAt != "now" {
		t.Errorf("lastHandledReconcileAt = %q, want now", object.Status.LastHandledReconcileAt)
	}

	before := whole.Status.Artifact.Digest
	until("the second artifact in the one that includes it", func() bool {
		err := env.Hub.Get(t.Context(), client.ObjectKeyFromObject(whole), whole)
		return err == nil && whole.Status.IncludedArtifacts[0].Digest == object.Status.Artifact.Digest
	})
	if whole.Status.Artifact.Digest == before || whole.Status.Artifact.Revision != "sha1:"+first {
		t.Errorf("it has the artifact %+v, before %s", whole.Status.Artifact, before)
	}

	digest := object.Status.Artifact.Digest
	if err := env.Hub.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		return !b.store.Has(digest), nil
	})
	if err != nil {
		t.Errorf("the artifact of a repository that is gone stays: %v", err)
	}
}
