package management

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	fakehub "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/policies/orphans"
)

// orphanNamed is an orphan as it was listed, of the Work of its name.
func orphanNamed(kind, namespace, name string) object {
	id := orphans.ID{Kind: schema.GroupKind{Kind: kind}, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	work := types.NamespacedName{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: name}
	return object{
		Kind: kind, Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Work: name, Outcome: outcomeFound, version: "7",
		at:     join.Served{Kind: id.Kind, Resource: corev1.SchemeGroupVersion.WithResource(strings.ToLower(kind) + "s")},
		orphan: orphans.Object{ID: id, Work: work, Managed: true, Applied: true},
	}
}

// TestWhatPruneSaysOfEach: a person reads one line of each object, with why it stays, and
// programs read the same.
func TestWhatPruneSaysOfEach(t *testing.T) {
	blocked, leaving := orphanNamed("ConfigMap", "shop", "held"), orphanNamed("ConfigMap", "shop", "leaving")
	blocked.orphan.Leaving, leaving.orphan.Leaving = true, true
	blocked.keeps = []string{"example.com/a", "example.com/b"}
	wanted := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: "wanted"}}
	wanted.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"wanted"}}`)}}}
	configMaps := corev1.Resource("configmaps")
	answers := map[string]error{
		"gone":    apierrors.NewNotFound(configMaps, "gone"),
		"changed": apierrors.NewConflict(configMaps, "changed", nil),
		"kept":    apierrors.NewForbidden(configMaps, "kept", nil),
		"hostile": apierrors.NewBadRequest("no\x1b[2J\nCluster is fine"),
	}
	for name, tc := range map[string]struct {
		found  object
		line   string
		fails  bool
		asked  bool // whether the cluster was asked to delete it
		output string
	}{
		"it is removed":                    {found: orphanNamed("ConfigMap", "shop", "lost"), line: "ConfigMap shop/lost removed", asked: true},
		"one without a namespace":          {found: orphanNamed("ClusterRole", "", "lost"), line: "ClusterRole lost removed", asked: true},
		"others have something in it":      {found: orphanNamed("Namespace", "", "shop"), line: "Namespace shop left: what others have in it would go as well; remove it in the cluster itself"},
		"it is being deleted":              {found: leaving, line: "ConfigMap shop/leaving left: being deleted"},
		"its finalizers keep it":           {found: blocked, line: "ConfigMap shop/held left: being deleted, kept by its finalizers: example.com/a, example.com/b"},
		"its Work has come meanwhile":      {found: orphanNamed("ConfigMap", "shop", "wanted"), line: "ConfigMap shop/wanted left: its Work asks for it again"},
		"somebody else has removed it":     {found: orphanNamed("ConfigMap", "shop", "gone"), line: "ConfigMap shop/gone left: it is gone already", asked: true},
		"somebody has changed it":          {found: orphanNamed("ConfigMap", "shop", "changed"), line: "ConfigMap shop/changed left: it has changed since it was listed", asked: true},
		"the cluster refuses":              {found: orphanNamed("ConfigMap", "shop", "kept"), line: `ConfigMap shop/kept failed: configmaps "kept" is forbidden: <nil>`, fails: true, asked: true},
		"it obeys nothing on the terminal": {found: orphanNamed("ConfigMap", "shop", "hostile"), line: "ConfigMap shop/hostile failed: no [2J Cluster is fine", fails: true, asked: true},
		"for a program there are no lines": {found: blocked, output: "json"},
	} {
		t.Run(name, func(t *testing.T) {
			edge := fake.NewSimpleMetadataClient(fake.NewTestScheme())
			asked := false
			edge.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
				asked = true
				return true, nil, answers[a.(clienttesting.DeleteAction).GetName()]
			})
			p := &prune{cluster: "east", output: tc.output, hub: fakehub.NewClientBuilder().WithScheme(scheme.New()).WithObjects(wanted).Build()}
			out := &pruned{Cluster: "east", Objects: []object{tc.found}}
			var printed strings.Builder
			err := p.removeEach(t.Context(), edge, &printed, out)
			want := tc.line
			if want != "" {
				want += "\n"
			}
			if diff := cmp.Diff(want, printed.String()); diff != "" || (err != nil) != tc.fails || asked != tc.asked {
				t.Errorf("error %v, the cluster was asked: %t; output (-want +got):\n%s", err, asked, diff)
			}
			if o := out.Objects[0]; tc.line != "" && o.line() != tc.line {
				t.Errorf("programs are told %s: %q", o.Outcome, o.Message)
			}
		})
	}
}

// TestWhatPruneShowsObeysNothing: control characters from a cluster do not leave their column.
func TestWhatPruneShowsObeysNothing(t *testing.T) {
	found := orphanNamed("ConfigMap", "shop", "lost")
	found.Work = "lost\x1b[2J\nConfigMap"
	out := &pruned{Cluster: "east", Objects: []object{found}, Unread: []string{"boats\x1b[2J.sea.example"}}
	var printed strings.Builder
	if err := out.print(&printed); err != nil {
		t.Fatal(err)
	}
	want := "could not be listed: boats [2J.sea.example\nKIND       NAMESPACE  NAME  WORK\nConfigMap  shop       lost  lost [2J ConfigMap\n"
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
