package apply_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// eachSecond checks for drift every second.
func eachSecond(spec *kustomizev1.KustomizationSpec) {
	spec.Interval = metav1.Duration{Duration: time.Second}
}

// number returns the value in a ConfigMap of configMaps; empty for none.
func (w *world) number(name string) string {
	w.t.Helper()
	obj := w.configMap(name)
	if obj == nil {
		return ""
	}
	data, _ := obj.Object["data"].(map[string]any)
	text, _ := data["number"].(string)
	return text
}

// drifts deletes one object and changes another, as somebody else would.
func (w *world) drifts() {
	w.t.Helper()
	if err := w.Hub.Delete(w.t.Context(), w.configMap("config-00")); err != nil {
		w.t.Fatal(err)
	}
	w.edit(w.configMap("config-01"), "77", "data", "number")
}

// restored waits until drifts is undone.
func (w *world) restored(when string) {
	w.t.Helper()
	w.until("what drifted is back: "+when, func() (bool, string) {
		got := []string{w.number("config-00"), w.number("config-01")}
		return slices.Equal(got, []string{"0", "1"}), strings.Join(got, ",")
	})
}

// Drift from the last good revision is corrected while newer ones are refused, whatever the reason, however many there
// are, and after a restart.
func TestTheLastGoodRevisionIsKept(t *testing.T) {
	w := newWorld(t)
	good := map[string]string{"app/config.yaml": configMaps(2)}
	first := w.commit(good)
	w.kustomization("web", eachSecond)
	w.ready("web", first)
	refusals := []struct {
		reason string
		files  map[string]string
	}{
		{meta.BuildFailedReason, map[string]string{"app/config.yaml": configMaps(2), "app/x.yaml": "apiVersion: v1\nkind: [\n"}},
		{applier.ReasonNamespaceNotFound, map[string]string{"app/config.yaml": configMaps(3), "app/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}\n"}},
		{"PathNotFound", map[string]string{"elsewhere/config.yaml": configMaps(2)}},
		{applier.ReasonInvalidObject, map[string]string{"app/config.yaml": strings.Replace(configMaps(2), `"1"`, "[1]", 1)}},
	}
	for _, refused := range refusals {
		revision := w.commit(refused.files)
		w.awaitReason("web", revision, refused.reason)
		w.drifts()
		w.restored(refused.reason)
		ks := w.get("web")
		w.awaitReason("web", revision, refused.reason)
		if ks.Status.LastAppliedRevision != first || ks.Status.LastAttemptedRevision != revision {
			t.Errorf("applied %s, attempted %s", ks.Status.LastAppliedRevision, ks.Status.LastAttemptedRevision)
		}
	}
	if !slices.Contains(w.events.reasonsOf("web"), applier.ReasonDriftCorrected) {
		t.Errorf("nobody is told: %q", w.events.reasonsOf("web"))
	}
	w.stop()
	w.drifts()
	w.start()
	w.restored("by another process")
	w.ready("web", w.commit(map[string]string{"app/config.yaml": configMaps(3)}))
}

// What somebody deletes is applied again at once, also while a newer revision is refused.
func TestWhatIsDeletedComesBackWhileARevisionIsRefused(t *testing.T) {
	w := newWorld(t)
	templates := &listening{}
	w.templates = templates
	w.stop()
	w.start()
	w.kustomization("web")
	w.ready("web", w.commit(map[string]string{"app/config.yaml": configMaps(2)}))
	w.awaitReason("web", w.commit(map[string]string{"elsewhere/config.yaml": configMaps(2)}), "PathNotFound")
	gone := w.configMap("config-00")
	if err := w.Hub.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	templates.Changed(templatestore.KeyOf(gone), gone, nil, false)
	w.until("it is back", func() (bool, string) { return w.number("config-00") == "0", "" })

	w.edit(w.configMap("config-01"), "77", "data", "number")
	w.annotate("web", meta.ReconcileRequestAnnotation, "now")
	w.until("what was changed is back once that is asked for", func() (bool, string) { return w.number("config-01") == "1", "" })
}

// What another Kustomization took over meanwhile is left alone.
func TestWhatIsNoMoreOfTheLastGoodRevisionIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	first := w.commit(map[string]string{"app/config.yaml": named("a", "b"), "db/config.yaml": named("c")})
	w.kustomization("web", eachSecond)
	w.kustomization("db", in("./db"), eachSecond)
	w.ready("web", first)
	w.ready("db", first)
	second := w.commit(map[string]string{"app/config.yaml": named("a") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}\n", "db/config.yaml": named("b", "c")})
	w.awaitReason("web", second, applier.ReasonNamespaceNotFound)
	w.ready("db", second)
	if err := w.Hub.Delete(t.Context(), w.configMap("a")); err != nil {
		t.Fatal(err)
	}
	w.until("a is back", func() (bool, string) { return w.configMap("a") != nil, "" })
	owner, _ := inventory.OwnerOf(w.configMap("b"))
	if diff := cmp.Diff("db", owner.Name); diff != "" {
		t.Errorf("b is of (-want +got):\n%s", diff)
	}
}

// What moved to another Kustomization, and left that later, is not created again for the last good revision of the
// first. What the brake refuses to delete is.
func TestWhatMovedAwayStaysAway(t *testing.T) {
	bad := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: nowhere}\n"
	many := named("d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7")
	cases := map[string]struct {
		first, next string // what it holds, with b, and without
		reason      string
		back        string // what is applied again if somebody deletes it
	}{
		"a revision that is refused": {named("a", "b"), named("a") + bad, applier.ReasonNamespaceNotFound, "a"},
		"one that the brake holds":   {named("a", "b") + many, named("a"), inventory.ReasonPruneBlocked, "d0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.commit(map[string]string{"app/config.yaml": tc.first, "db/config.yaml": named("c")})
			w.kustomization("web", eachSecond)
			w.kustomization("db", in("./db"), eachSecond)
			w.ready("web", first)
			w.ready("db", first)
			moved := w.commit(map[string]string{"app/config.yaml": tc.next, "db/config.yaml": named("b", "c")})
			w.awaitReason("web", moved, tc.reason)
			w.ready("db", moved)
			removed := w.commit(map[string]string{"app/config.yaml": tc.next, "db/config.yaml": named("c")})
			w.ready("db", removed)
			for _, each := range []string{"once", "again"} {
				if err := w.Hub.Delete(t.Context(), w.configMap(tc.back)); err != nil {
					t.Fatal(err)
				}
				w.until(tc.back+" is back "+each, func() (bool, string) { return w.configMap(tc.back) != nil, "" })
			}
			if w.configMap("b") != nil {
				t.Error("b is back")
			}
		})
	}
}

// Drift from what is applied is corrected whatever the reason is for which the new revision is refused.
func TestWhatStandsIsKeptWhateverIsRefused(t *testing.T) {
	cases := map[string]struct {
		refuse func(w *world)
		reason string
	}{
		"a field that is not supported": {func(w *world) {
			w.change("web", func(spec *kustomizev1.KustomizationSpec) {
				spec.Decryption = &kustomizev1.Decryption{Provider: "sops", ServiceAccountName: "default"}
			})
		}, kustomizations.ReasonNotSupported},
		"an annotation that makes no sense": {func(w *world) { w.annotate("web", health.MaxUnreachableAnnotation, "some") }, kustomizations.ReasonInvalidAnnotation},
		"a dependency that is not ready": {func(w *world) {
			w.change("web", func(spec *kustomizev1.KustomizationSpec) {
				spec.DependsOn = []kustomizev1.DependencyReference{{Name: "nothing"}}
			})
		}, meta.DependencyNotReadyReason},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.commit(map[string]string{"app/config.yaml": configMaps(2)})
			w.kustomization("web", eachSecond)
			w.ready("web", first)
			tc.refuse(w)
			w.awaitReason("web", first, tc.reason)
			w.drifts()
			w.restored(name)
		})
	}
}
