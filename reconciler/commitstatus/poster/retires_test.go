package poster

import (
	"errors"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// TestACommitThatRetires a Kustomization, as a rename does, ends the report of that: on that commit, which it had reported
// nothing of, and once, also where the one who tells it begins anew.
func TestACommitThatRetires(t *testing.T) {
	const removed = "c retired by this commit: what it applied is removed, or stays by its policy, or is applied by others"
	for name, tc := range map[string]struct {
		state         gitopsv1alpha1.CommitState // of the commit before
		again, others bool                       // it is there again; the one that applied it reports another repository
		holds         bool
		want          []string
	}{
		"the one before had succeeded":             {state: gitopsv1alpha1.CommitSuccess, want: []string{removed}},
		"the one before had failed":                {state: gitopsv1alpha1.CommitFailure, want: []string{removed}},
		"the one before was pending":               {state: gitopsv1alpha1.CommitPending, want: []string{"a superseded by cccccccc, which retires the Kustomization", removed}},
		"it is there again":                        {state: gitopsv1alpha1.CommitSuccess, again: true},
		"it was applied out of another one":        {state: gitopsv1alpha1.CommitSuccess, others: true},
		"somebody deletes what is told of it":      {state: gitopsv1alpha1.CommitSuccess, again: true, holds: true},
		"it is deleted, and comes back in a while": {state: gitopsv1alpha1.CommitSuccess, holds: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTenants(t, Options{Remains: clusters{}}, "team")
			if err := w.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
				t.Fatal(err)
			}
			w.reports("team", "web", 1, "a")
			w.reports("team", "root", 1, "c")
			key, cs, root := client.ObjectKey{Namespace: "team", Name: "web"}, &gitopsv1alpha1.CommitStatus{}, &gitopsv1alpha1.CommitStatus{}
			if err := errors.Join(w.hub.Get(t.Context(), key, cs), w.hub.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "root"}, root)); err != nil {
				t.Fatal(err)
			}
			if root.Spec.KustomizationRef = (&gitopsv1alpha1.LocalReference{Name: "root"}); tc.others {
				root.Spec.Repository += "-config"
			}
			cs.Spec.State, cs.Finalizers = tc.state, []string{gitopsv1alpha1.CommitStatusFinalizer}
			attempted := "main@sha1:" + strings.Repeat("c", 40)
			if tc.holds {
				attempted = "holds"
			}
			w.parent(cs, attempted)
			if tc.again {
				if err := w.hub.Create(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(w.hub.Update(t.Context(), cs), w.hub.Update(t.Context(), root)); err != nil {
				t.Fatal(err)
			}
			w.runs("team", "web")
			if err := w.hub.Delete(t.Context(), cs); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				w.loop = New(w.hub, w.hub, w.loop.opts) // whoever leads next
				if _, err := w.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for i, reported := range w.reported[1:] {
				got = append(got, w.commits[i+1][:1]+" "+reported)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if err := w.hub.Get(t.Context(), key, cs); (err == nil) != (tc.holds && !tc.again) {
				t.Errorf("reading it: %v", err)
			}
		})
	}
}
