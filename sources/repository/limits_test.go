package repository_test

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// A namespace has so many repositories, and so much of what they fetched: the next ones wait.
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
