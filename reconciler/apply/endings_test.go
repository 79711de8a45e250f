package apply_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: NAMESPACE}\n" +
	"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

// stuck are the ways in which a successor does not take over what it wants.
var stuck = map[string]string{
	"it waits for ever": "prune: true, dependsOn: [{name: nobody}]",
	"it is suspended":   "prune: true, suspend: true",
}

// renamed renames the child inner to shop, which is stuck, and returns what has to stay.
func renamed(t *testing.T, how string) (*world, map[string]string, func() map[string]types.UID) {
	t.Helper()
	w := newWorld(t)
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": named("a", "b") + claim}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	there := func() map[string]types.UID {
		out := w.uids("a", "b")
		if obj := w.object("v1", "PersistentVolumeClaim", w.namespace, "data"); obj != nil && obj.GetDeletionTimestamp() == nil {
			out["data"] = obj.GetUID()
		}
		return out
	}
	files["app/child.yaml"] = strings.Replace(child("shop", "inner"), "prune: true", how, 1)
	w.commit(files)
	w.ends("inner", siblings.ReasonHandingOver)
	return w, files, there
}

// ends waits until a Kustomization that is being deleted reports the reason why it is still there, and returns the
// message.
func (w *world) ends(name, reason string) string {
	w.t.Helper()
	message := ""
	w.until(name+" ends: "+reason, func() (bool, string) {
		ks := w.get(name)
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		message = ready.Message
		return ks.DeletionTimestamp != nil && ready.Reason == reason, ready.Reason + ": " + message
	})
	return message
}

func (w *world) isGone(name string) bool {
	w.t.Helper()
	return w.object(kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind, w.namespace, name) == nil
}

// returns waits until there is another Kustomization with the same name.
func (w *world) returns(name string, old types.UID) {
	w.t.Helper()
	w.until(name+" is there again", func() (bool, string) {
		ks := w.object(kustomizev1.GroupVersion.String(), kustomizev1.KustomizationKind, w.namespace, name)
		return ks != nil && ks.GetUID() != old, ""
	})
}

// A child that was renamed, and gets its old name back before the new one has taken anything over, keeps
// its objects.
func TestARenameThatIsReverted(t *testing.T) {
	for name, how := range stuck {
		t.Run(name, func(t *testing.T) {
			w, files, there := renamed(t, how)
			want, old := there(), w.get("inner").UID
			files["app/child.yaml"] = child("inner", "inner")
			reverted := w.commit(files)
			w.returns("inner", old)
			w.ready("inner", reverted)
			w.ready("web", reverted)
			if diff := cmp.Diff(want, there()); diff != "" {
				t.Errorf("the objects (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(3, len(inventoryOf(w.get("inner")))); diff != "" {
				t.Errorf("objects of inner (-want +got):\n%s", diff)
			}
		})
	}
}

// The override that the commit drops which renames a child stays with the old name until the new one has taken all that it
// wants: what it is for would go to clusters without it, as it was before.
func TestARenameThatDropsAnOverride(t *testing.T) {
	w := newWorld(t)
	const rule = "---\napiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: rule, namespace: NAMESPACE}\n" +
		"spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}], overrideRules: [{overriders: {annotationsOverrider: [{operator: add, value: {a: b}}]}}]}\n"
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": named("a", "b", "c"), "inner/rule.yaml": rule}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	there := func() bool {
		return w.object("policy.karmada.io/v1alpha1", "OverridePolicy", w.namespace, "rule") != nil
	}
	files = map[string]string{"app/child.yaml": strings.Replace(child("shop", "moved"), "prune: true", stuck["it waits for ever"], 1), "app/config.yaml": named("own"), "moved/config.yaml": named("a", "b")}
	w.commit(files)
	w.ends("inner", siblings.ReasonHandingOver)
	w.until("what is no policy goes at once", func() (bool, string) { return w.configMap("c") == nil, "" })
	if !there() {
		t.Error("the override went before the objects that it is for were taken")
	}
	files["app/child.yaml"] = child("shop", "moved")
	w.ready("shop", w.commit(files))
	w.until("inner is gone", func() (bool, string) { return w.isGone("inner"), "" })
	if there() {
		t.Error("the override has stayed")
	}
}

// What was to change hands, and is wanted by nobody after all, goes only if people say so.
func TestARenameThatEndsNowhere(t *testing.T) {
	for name, tc := range map[string]struct {
		how string
		// then is the child after the next commit, and let how people allow the deletion.
		then string
		let  func(w *world, files map[string]string)
	}{
		"the successor is dropped, and a trailer lets it go": {stuck["it waits for ever"], "", func(w *world, files map[string]string) {
			w.allows = "configmap/" + w.namespace + "/a, configmap/" + w.namespace + "/b, pvc/" + w.namespace + "/data"
			files["app/config.yaml"] = named("own", "more")
			w.commit(files)
		}},
		"the successor gets another path, and an annotation lets it go": {stuck["it is suspended"], strings.Replace(child("shop", "other"), "prune: true", stuck["it is suspended"], 1), func(w *world, _ map[string]string) {
			repository := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fleet"}}
			if err := w.Hub.Delete(w.t.Context(), repository); err != nil {
				w.t.Fatal(err)
			}
			allow := `or allow it with the annotation kustomize.flotilla.io/allow-prune: "kustomization/` + w.namespace + `/inner"`
			reads := 0
			w.until("it says what lets it go without a source", func() (bool, string) {
				reads++
				w.annotate("inner", "look", strconv.Itoa(reads))
				message := w.ends("inner", inventory.ReasonPruneBlocked)
				return strings.HasSuffix(message, allow), message
			})
			w.annotate("inner", inventory.AllowPruneAnnotation, "kustomization/"+w.namespace+"/inner")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, files, there := renamed(t, tc.how)
			want := there()
			delete(files, "app/child.yaml")
			if tc.then != "" {
				files["app/child.yaml"] = tc.then
			}
			files["other/config.yaml"] = named("z")
			dropped := w.commit(files)
			message := strings.ReplaceAll(w.ends("inner", inventory.ReasonPruneBlocked), w.namespace, "NS")
			wantMessage := "revision " + dropped + " would remove 3 of 3 objects (PersistentVolumeClaim/NS/data, ConfigMap/NS/a, ConfigMap/NS/b): they were to change hands, and nobody wants them any more; nothing of that was removed; " +
				"commit them again, or allow it with the annotation kustomize.flotilla.io/allow-prune: \"" + dropped + ", persistentvolumeclaim/NS/data\", or in a commit by the trailer Flotilla-Allow-Delete: configmap/NS/a, configmap/NS/b, persistentvolumeclaim/NS/data"
			if diff := cmp.Diff(wantMessage, message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			w.stop()
			w.start()
			w.annotate("inner", "look", "again")
			w.ready("web", dropped)
			if diff := cmp.Diff(want, there()); diff != "" {
				t.Errorf("the objects (-before +after):\n%s", diff)
			}
			if got := w.get("inner").Status.LastAttemptedRevision; got != dropped {
				t.Errorf("it is told of %s, want %s", got, dropped)
			}
			tc.let(w, files)
			w.until("the old one is gone", func() (bool, string) { return w.isGone("inner"), "" })
			if diff := cmp.Diff(map[string]types.UID{}, there()); diff != "" {
				t.Errorf("the objects (-want +got):\n%s", diff)
			}
		})
	}
}

// delayed delays lists of a Kustomization's objects until they are released.
type delayed struct {
	inner   http.RoundTripper
	of      string
	release chan struct{} // closed to release the lists
}

func (d delayed) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.Contains(req.URL.Query().Get("labelSelector"), "/name="+d.of+",") {
		select {
		case <-d.release:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return d.inner.RoundTrip(req)
}

// What a removed Kustomization was to hand over is recorded at its removal, so that it is not deleted even if its
// successor is dropped before the deletion is worked on.
func TestTheNextCommitComesBeforeAnEnd(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{"app/child.yaml": child("inner", "inner"), "app/config.yaml": named("own"), "inner/config.yaml": named("a", "b")}
	first := w.commit(files)
	w.kustomization("web")
	w.ready("web", first)
	w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner"); w.remove("shop") })
	want := w.uids("a", "b")
	release := make(chan struct{})
	w.stop()
	w.wrap = func(inner http.RoundTripper) http.RoundTripper { return delayed{inner, "inner", release} }
	w.opts.Places = places.New(places.Options{Alone: 8, Shared: 8}) // a delayed request keeps its place
	w.start()
	files["app/child.yaml"] = strings.Replace(child("shop", "inner"), "prune: true", stuck["it is suspended"], 1)
	w.commit(files)
	w.until("inner is removed", func() (bool, string) { return w.get("inner").DeletionTimestamp != nil, "" })
	delete(files, "app/child.yaml")
	dropped := w.commit(files)
	w.ready("web", dropped)
	close(release)
	w.ends("inner", inventory.ReasonPruneBlocked)
	if diff := cmp.Diff(want, w.uids("a", "b")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
}

// A child that somebody deletes is created again and keeps its objects; one that is deleted with its parent deletes
// them.
func TestAChildThatIsDeletedByHand(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/child.yaml": child("inner", "inner"), "inner/config.yaml": named("a", "b")})
	w.kustomization("web")
	w.ready("web", first)
	old := w.ready("inner", first)
	t.Cleanup(func() { w.remove("inner") })
	want := w.uids("a", "b")
	if err := w.Hub.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.returns("inner", old.UID)
	w.ready("inner", first)
	if diff := cmp.Diff(want, w.uids("a", "b")); diff != "" {
		t.Errorf("the objects (-before +after):\n%s", diff)
	}
	for _, name := range []string{"inner", "web"} {
		if err := w.Hub.Delete(t.Context(), w.get(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.until("all is gone", func() (bool, string) {
		return w.isGone("inner") && w.isGone("web") && len(w.uids("a", "b")) == 0, ""
	})
}
