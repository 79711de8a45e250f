package siblings_test

import (
	"context"
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestChildrenAreJudgedByTheSpecThatTheyGet: a parent takes over the folder of its child, and leads that to another one. As the
// child is now, it holds all of the folder still; only the revision that would be refused for that changes it.
func TestChildrenAreJudgedByTheSpecThatTheyGet(t *testing.T) {
	parent, child := kustomization(platform, "a", "fleet"), kustomization(platform, "b", "fleet")
	parent.Spec.Path, child.Spec.Path = "./f1", "./f1"
	parent.UID, child.UID, child.Generation = "a", "b", 2
	at := siblings.Artifact{Source: inventory.SourceOf(parent), Digest: "sha256:2", Revision: "main@sha1:2"}
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		if ks.Spec.Path == "./f1" {
			return siblings.Wants{Entries: []inventory.Entry{reader}}, nil
		}
		return siblings.Wants{}, nil
	}
	role := &unstructured.Unstructured{}
	role.SetGroupVersionKind(reader.GroupVersionKind())
	role.SetNamespace(reader.ID.Namespace)
	role.SetName(reader.ID.Name)
	for name, tc := range map[string]struct {
		to    string // the folder that the child gets
		isNew bool   // nobody's labels are on the object yet
		want  siblings.SharedObjects
	}{
		"it gets another folder":                         {to: "./f3"},
		"it gets another folder, and has not applied it": {to: "./f3", isNew: true},
		"it keeps its folder":                            {to: "./f1", want: siblings.SharedObjects{Shared: []siblings.Shared{{ID: reader.ID, With: client.ObjectKeyFromObject(child)}}}},
		"it keeps its folder, and has not applied it":    {to: "./f1", isNew: true, want: siblings.SharedObjects{Shared: []siblings.Shared{{ID: reader.ID, With: client.ObjectKeyFromObject(child)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(parent.DeepCopy(), child.DeepCopy()).Build()
			index := siblings.New(hub, build, siblings.EligibleBy(tenancy.Rules{PrivilegedNamespaces: []string{platform}}))
			index.Learn(child, at, siblings.Wants{Entries: []inventory.Entry{reader}})
			index.Learn(parent, at, siblings.Wants{Entries: []inventory.Entry{reader}})
			next := child.DeepCopy()
			next.Spec.Path = tc.to
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
			if err != nil {
				t.Fatal(err)
			}
			led := &unstructured.Unstructured{Object: content}
			led.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
			q := siblings.SharedQuery{Of: parent, At: at, Changes: []applier.Change{
				{Desired: role, Action: applier.Configured, Owner: client.ObjectKeyFromObject(child)},
				{Desired: led, Action: applier.Configured, Owner: client.ObjectKeyFromObject(parent)},
			}}
			if tc.isNew {
				q.Changes[0].Owner, q.Added = client.ObjectKey{}, []inventory.Entry{reader}
			}
			got, err := siblings.FindShared(t.Context(), index, q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoIsLedElsewhereRemovesNothing: a commit swaps the folders of parent and child. Until the one above has given the
// parent its new folder it drops its child by the old one, which it keeps by the new.
func TestWhoIsLedElsewhereRemovesNothing(t *testing.T) {
	root, child := kustomization(platform, "root", "fleet"), kustomization(platform, "a", "fleet")
	child.Labels, child.Spec.Path = inventory.OwnerLabels(client.ObjectKeyFromObject(root)), "./f1"
	at := siblings.Artifact{Source: inventory.SourceOf(root), Digest: "sha256:2", Revision: "main@sha1:2"}
	waits := "waiting for Kustomization flux-system/root, which gives this one another spec at revision main@sha1:2: until then nothing is removed"
	for name, tc := range map[string]struct {
		to      string // the folder that the root gives it
		root    func(*kustomizev1.Kustomization)
		removes []inventory.Entry
		broken  bool
		want    string
	}{
		"it is led elsewhere":                {to: "./f2", removes: []inventory.Entry{reader}, want: waits},
		"it removes nothing":                 {to: "./f2"},
		"it stays where it is":               {to: "./f1", removes: []inventory.Entry{reader}},
		"the root does not hold it any more": {removes: []inventory.Entry{reader}},
		"the root cannot be built":           {to: "./f2", broken: true, removes: []inventory.Entry{reader}},
		"the root has applied the revision":  {to: "./f2", removes: []inventory.Entry{reader}, root: func(ks *kustomizev1.Kustomization) { ks.Status.LastAppliedRevision = at.Revision }},
		"the root is suspended":              {to: "./f2", removes: []inventory.Entry{reader}, root: suspended},
		"the root waits for it": {to: "./f2", removes: []inventory.Entry{reader}, root: func(ks *kustomizev1.Kustomization) {
			ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "a"}}
		}},
		"the root applies another source": {to: "./f2", removes: []inventory.Entry{reader}, root: func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			above := root.DeepCopy()
			if tc.root != nil {
				tc.root(above)
			}
			build := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (siblings.Wants, error) {
				if tc.broken {
					return siblings.Wants{}, errors.New("it is broken")
				}
				if tc.to == "" {
					return siblings.Wants{}, nil
				}
				next := child.DeepCopy()
				next.Spec.Path = tc.to
				return siblings.Wants{Children: []*kustomizev1.Kustomization{next}}, nil
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(above, child.DeepCopy()).Build()
			index := siblings.New(hub, build, siblings.EligibleBy(tenancy.Rules{PrivilegedNamespaces: []string{platform}}))
			got := ""
			if err := siblings.AwaitParent(t.Context(), index, child, at, tc.removes); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
