package repository_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestLimits checks that repositories beyond a namespace's limits, of their
// number and of stored bytes, wait.
func TestLimits(t *testing.T) {
	limits := tenancy.Limits{tenancy.Sources: 1}
	b := newBench(t, repository.Options{Namespaces: func(string) tenancy.Limits { return limits }})
	b.commit("first", map[string]string{"app.yaml": "first"})
	b.create(nil)
	b.mustReconcile()
	first := b.object().Status.Artifact.Revision
	earlier := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "aaa"}}
	elsewhere := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "aaa"}}
	for _, object := range []*sourcev1.GitRepository{earlier, elsewhere} {
		if err := b.hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(words string) {
		t.Helper()
		result, err, _, _ := b.reconcile()
		if err != nil || result.RequeueAfter != time.Minute {
			t.Errorf("Reconcile = %v, %v", result, err)
		}
		if diff := cmp.Diff([]string{"ArtifactInStorage=True Succeeded", "FetchFailed=True LimitExceeded", "Ready=False LimitExceeded", "Reconciling=True ProgressingWithRetry"}, conditions(b.object())); diff != "" {
			t.Errorf("conditions (-want +got):\n%s", diff)
		}
		for _, c := range b.object().Status.Conditions {
			if c.Type == "Ready" && !strings.HasPrefix(c.Message, words) {
				t.Errorf("message = %q, want it to begin with %q", c.Message, words)
			}
		}
		if got := b.object().Status.Artifact.Revision; got != first {
			t.Errorf("the artifact is of %s, want %s", got, first)
		}
	}
	b.commit("second", map[string]string{"app.yaml": "second"})
	refused("the namespace shop would have 2 sources, and may have 1 (serve --namespace-limits sources=1)")
	limits = tenancy.Limits{tenancy.ArtifactSize: 1}
	refused("the namespace shop would have ")
	limits = tenancy.DefaultLimits()
	b.mustReconcile()
	if diff := cmp.Diff(stored, conditions(b.object())); diff != "" {
		t.Errorf("conditions once there is room (-want +got):\n%s", diff)
	}
}

// TestArtifactsHaveRoom checks that an artifact is measured before it is stored:
// one beyond the limit is refused unless it is smaller than the one that it
// replaces, and older artifacts in use count.
func TestArtifactsHaveRoom(t *testing.T) {
	limits := tenancy.Limits{tenancy.ArtifactSize: 5000}
	var inUse []artifact.Used
	b := newBench(t, repository.Options{
		Namespaces: func(string) tenancy.Limits { return limits },
		InUse:      func(context.Context, client.ObjectKey) ([]artifact.Used, error) { return inUse, nil },
	})
	noise := func(n int, seed uint64) string {
		random := rand.New(rand.NewPCG(seed, 0))
		text := make([]byte, n)
		for i := range text {
			text[i] = "0123456789abcdef"[random.IntN(16)]
		}
		return string(text)
	}
	at := func(what string, bytes int, seed uint64, ready string) {
		t.Helper()
		b.commit(what, map[string]string{"app.yaml": noise(bytes, seed)})
		if _, err, _, _ := b.reconcile(); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.object().Status.Conditions {
			if c.Type == "Ready" && c.Reason != ready {
				t.Errorf("%s: %s: %s, want %s", what, c.Reason, c.Message, ready)
			}
		}
	}
	used := func() {
		a := b.object().Status.Artifact
		inUse = append(inUse, artifact.Used{Digest: a.Digest, Revision: a.Revision})
	}
	b.commit("first", map[string]string{"app.yaml": "first"})
	b.create(nil)
	b.mustReconcile()
	at("it grows", 6000, 1, "Succeeded")
	at("beyond the room", 20000, 2, "LimitExceeded")
	limits[tenancy.ArtifactSize] = 1000
	at("the limit is lower, and it grows", 6100, 3, "LimitExceeded")
	at("it shrinks, to more than it may have", 5000, 4, "Succeeded")
	limits[tenancy.ArtifactSize] = 4000
	used()
	at("one is used", 3000, 5, "Succeeded")
	used()
	at("two are used", 2900, 6, "LimitExceeded")
	inUse = inUse[1:]
	at("the first is not used any more", 2800, 7, "Succeeded")
}
