package inherited_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/secrets"
	"github.com/flotilla-io/flotilla/reconciler/secrets/inherited"
)

const canary = "canary7f3a9"

// applied is what a Kustomization applied that put text of a Secret into it.
func applied(by string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: inventory.OwnerLabels(types.NamespacedName{Namespace: "flux-system", Name: by}),
		Annotations: map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields},
	}
}

func kustomization(edit func(*kustomizev1.Kustomization)) client.Object {
	out := &kustomizev1.Kustomization{ObjectMeta: applied("apps"), Spec: kustomizev1.KustomizationSpec{Path: "./leaf", SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "shop"}}}
	edit(out)
	return out
}

// TestNoKindShowsTheValue: whether the Kustomization that put it there has run in this process or not.
func TestNoKindShowsTheValue(t *testing.T) {
	cases := map[string]struct {
		obj  client.Object
		says string // a word that the text has
	}{
		"a variable": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Spec.PostBuild = &kustomizev1.PostBuild{Substitute: map[string]string{"X": canary}}
		}), `ConfigMap/can/leaf: metadata.labels: Invalid value: "a b ` + canary + `"`},
		"common metadata": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Spec.CommonMetadata = &kustomizev1.CommonMetadata{Labels: map[string]string{"x": "a b " + canary}}
		}), `metadata.labels: Invalid value: "a b ` + canary + `"`},
		"a patch": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Spec.Patches = []kustomize.Patch{{Patch: "- op: test\n  path: /data/a\n  value: " + canary + "\n"}}
		}), "testing value " + canary + " failed"},
		"an annotation": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Annotations["kustomize.flotilla.io/max-unreachable"] = canary
		}), `the annotation kustomize.flotilla.io/max-unreachable is "` + canary + `"`},
		"a path": {kustomization(func(k *kustomizev1.Kustomization) { k.Spec.Path = "./no/" + canary }), `spec.path "./no/` + canary + `": path not found`},
		"an expression": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "x", ReadyExpr: "dep.x == '" + canary + "'"}}
		}), "found " + canary + " here"},
		"a dependency": {kustomization(func(k *kustomizev1.Kustomization) {
			k.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: canary}}
		}), "dependency flux-system/" + canary + " does not exist"},
		"a host":               {&sourcev1.GitRepository{ObjectMeta: applied("apps"), Spec: sourcev1.GitRepositorySpec{URL: "http://" + canary + ".invalid/x.git"}}, "look up " + canary + ".invalid: no such host"},
		"a branch":             {&sourcev1.GitRepository{ObjectMeta: applied("apps"), Spec: sourcev1.GitRepositorySpec{Reference: &sourcev1.GitRepositoryRef{Branch: canary}}}, "couldn't find remote ref refs/heads/" + canary},
		"a filter of tags":     {&sourcev1.OCIRepository{ObjectMeta: applied("apps"), Spec: sourcev1.OCIRepositorySpec{Reference: &sourcev1.OCIRepositoryRef{SemverFilter: "(" + canary}}}, "spec.ref.semverFilter: missing ) in (" + canary},
		"the Provider":         {&notificationv1beta3.Alert{ObjectMeta: applied("apps"), Spec: notificationv1beta3.AlertSpec{ProviderRef: meta.LocalObjectReference{Name: canary}}}, "Provider shop/" + canary + " does not exist"},
		"where messages go":    {&notificationv1beta3.Provider{ObjectMeta: applied("apps"), Spec: notificationv1beta3.ProviderSpec{Address: "http://" + canary + ".invalid/"}}, "send to " + canary + ".invalid"},
		"what is woken":        {&notificationv1.Receiver{ObjectMeta: applied("apps"), Spec: notificationv1.ReceiverSpec{SecretRef: &meta.LocalObjectReference{Name: canary}}}, "the Secret " + canary + " does not exist"},
		"one of nobody's hand": {&sourcev1.GitRepository{ObjectMeta: applied("unknown"), Spec: sourcev1.GitRepositorySpec{URL: "https://example.com/" + canary}}, "read https://example.com/" + canary},
	}
	run := inherited.New()
	apps := &secrets.Values{}
	apps.Keep(canary)
	run.Learn(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "apps"}}, apps)
	for name, tc := range cases {
		for when, known := range map[string]*inherited.Known{"before": inherited.New(), "after": run, "without": nil} {
			t.Run(name+" "+when, func(t *testing.T) {
				if got := known.Hide(tc.obj, tc.says); strings.Contains(got, canary) || !strings.Contains(got, "***") {
					t.Errorf("told: %s", got)
				}
				var own secrets.Values
				if known.Learn(tc.obj, &own); strings.Contains(own.Hide(tc.says), canary) {
					t.Errorf("its own loop tells: %s", own.Hide(tc.says))
				}
			})
		}
	}
}

func TestNoMoreIsHidden(t *testing.T) {
	known, apps, own := inherited.New(), &secrets.Values{}, &secrets.Values{}
	const text = `GitRepository shop has no "./leaf"`
	child := kustomization(func(*kustomizev1.Kustomization) {})
	if got := known.Hide(&sourcev1.GitRepository{Spec: sourcev1.GitRepositorySpec{URL: "leaf"}}, text); got != text {
		t.Errorf("of an object without the annotation: %s", got)
	}
	known.Learn(child, own)
	if got := own.Hide(text); got != `GitRepository *** has no "***"` {
		t.Errorf("before the one that applied it has run: %s", got)
	}
	apps.Keep(canary)
	known.Learn(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "apps"}}, apps)
	known.Learn(child, own)
	if got := own.Hide(text + canary); got != text+"***" {
		t.Errorf("after it has run: %s", got)
	}
	// What it applies itself knows the value, too.
	if got := known.Hide(&sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Labels: inventory.OwnerLabels(client.ObjectKeyFromObject(child)), Annotations: applied("").Annotations}}, text+canary); got != text+"***" {
		t.Errorf("of what it applies: %s", got)
	}
	known.Forget(types.NamespacedName{Namespace: "flux-system", Name: "apps"})
	known.Learn(child, own)
	if got := own.Hide(canary); got != "***" {
		t.Errorf("once that is gone: %s", got)
	}
}

func TestClean(t *testing.T) {
	var known *inherited.Known
	source := &sourcev1.GitRepository{ObjectMeta: applied("apps"), Spec: sourcev1.GitRepositorySpec{URL: "http://" + canary + ".invalid"}}
	boom := errors.New("look up " + canary + ".invalid")
	for name, err := range map[string]error{"a fault": boom, "a classed one": loop.Stalled("Reason", boom), "one within": fmt.Errorf("fetch: %w", loop.Waiting("Reason", time.Minute, boom))} {
		got := known.Clean(source, err)
		was, is := loop.As(err, "None"), loop.As(got, "None")
		if strings.Contains(got.Error(), canary) || strings.Contains(is.Error(), canary) || !errors.Is(got, boom) || is.Reason != was.Reason || is.Class != was.Class || is.After != was.After {
			t.Errorf("%s becomes %v, class %v, told as %v", name, got, is.Class, is)
		}
	}
	if err := known.Clean(source, nil); err != nil {
		t.Error(err)
	}
}

type lastEvent struct{ message string }

func (t *lastEvent) Event(_ runtime.Object, _, _, message string) { t.message = message }

// written takes what is written to a status.
type written struct {
	client.SubResourceWriter
	patches []string
}

func (w *written) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	w.patches = append(w.patches, string(data))
	return err
}

type hub struct {
	client.Client
	statuses *written
}

func (h hub) Status() client.SubResourceWriter { return h.statuses }

func TestEventsAndConditions(t *testing.T) {
	known := inherited.New()
	source := &sourcev1.GitRepository{ObjectMeta: applied("apps"), Spec: sourcev1.GitRepositorySpec{URL: "http://" + canary + ".invalid/x.git"}}
	source.Status.Artifact = &meta.Artifact{Revision: canary + "@sha1:abc"}
	var event lastEvent
	known.Recorder(&event).Event(source, "Warning", "GitOperationFailed", "look up "+canary+".invalid at "+canary+"@sha1:abc")
	if event.message != "look up *** at "+canary+"@sha1:abc" {
		t.Errorf("the Event says %s", event.message)
	}
	statuses := &written{}
	to := known.Client(hub{statuses: statuses})
	for range 2 { // the second time nothing changes
		before := source.DeepCopy()
		source.Status.Conditions = []metav1.Condition{{Type: "Ready", Message: "look up " + canary + ".invalid"}}
		if err := to.Status().Patch(t.Context(), source, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	if len(statuses.patches) != 1 || !strings.Contains(statuses.patches[0], `"message":"look up ***"`) {
		t.Errorf("written: %s", statuses.patches)
	}
}
