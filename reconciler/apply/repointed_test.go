package apply_test

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
)

// repoint lets the Kustomization web, of two objects, follow another repository with one of them, while the other object moves to the
// Kustomization other of its former one, which cannot be built. It returns the files of the former one.
func (w *world) repoint() map[string]string {
	w.t.Helper()
	files := map[string]string{"app/config.yaml": named("a", "b"), "other/config.yaml": named("z")}
	first := w.commit(files)
	w.kustomization("web")
	w.kustomization("other", in("./other"))
	w.ready("web", first)
	w.ready("other", first)
	w.create(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "split"}, Spec: sourcev1.GitRepositorySpec{URL: "https://git.example/split", Interval: metav1.Duration{Duration: time.Hour}}})
	second := w.commitTo(client.ObjectKey{Namespace: w.namespace, Name: "split"}, map[string]string{"app/config.yaml": named("a")})

	files = map[string]string{"other/config.yaml": named("b", "z") + "oops: ["}
	bad := w.commit(files)
	w.change("web", func(spec *kustomizev1.KustomizationSpec) { spec.SourceRef.Name = "split" })
	w.awaitReason("other", bad, "BuildFailed")
	w.awaitReason("web", second, siblings.ReasonHandingOver)
	files["other/config.yaml"] = named("b", "z")
	return files
}

// What leaves a Kustomization that follows another source by now may be wanted by others of its former one: it is kept for them as
// within one source, also after a restart.
func TestAKustomizationThatFollowsAnotherSource(t *testing.T) {
	w := newWorld(t)
	files := w.repoint()
	want := w.uids("a", "b", "z")
	w.stop()
	w.start()
	w.annotate("web", "look", "again")
	w.awaitReason("web", w.get("web").Status.LastAttemptedRevision, siblings.ReasonHandingOver)
	w.ready("other", w.commit(files))
	w.ready("web", w.get("web").Status.LastAttemptedRevision)
	if diff := cmp.Diff(want, w.uids("a", "b", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("web", "a")
	w.holds("other", "b", "z")
}

// The same holds for one that is deleted meanwhile.
func TestAKustomizationThatGoesAfterItsSourceWasChanged(t *testing.T) {
	w := newWorld(t)
	files := w.repoint()
	want := w.uids("b", "z")
	if err := w.Hub.Delete(t.Context(), w.get("web")); err != nil {
		t.Fatal(err)
	}
	w.ends("web", siblings.ReasonHandingOver)
	w.ready("other", w.commit(files))
	w.until("web is gone", func() (bool, string) { return w.isGone("web"), "" })
	if diff := cmp.Diff(want, w.uids("a", "b", "z")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	w.holds("other", "b", "z")
}
