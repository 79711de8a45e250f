package sharing_test

import (
	"context"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/sharing"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/apply/wanted"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const platform = "flux-system" // whose Kustomizations act as the control plane

var reader = inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "reader", GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}}, Version: "v1"}

// named returns a Kustomization that has applied the Role, unless change says otherwise.
func named(namespace, name, source string, change ...func(*kustomizev1.Kustomization)) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: source}
	ks.Status.Inventory = inventory.Record([]inventory.Entry{reader})
	for _, c := range change {
		c(ks)
	}
	return ks
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// TestWhatOthersHold: who has applied an object keeps it, whatever its source is. Labels alone say nothing, and no tenant
// keeps an object from who acts as the control plane.
func TestWhatOthersHold(t *testing.T) {
	suspended := func(ks *kustomizev1.Kustomization) { ks.Spec.Suspend = true }
	unsupported := func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Kind = "Bucket" }
	without := func(ks *kustomizev1.Kustomization) { ks.Status.Inventory = nil }
	deleted := func(ks *kustomizev1.Kustomization) {
		ks.DeletionTimestamp, ks.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x"}
	}
	shared := func(namespace, name string, sources ...client.ObjectKey) sharing.Found {
		return sharing.Found{Shared: []siblings.Shared{{ID: reader.ID, With: key(namespace, name)}}, Sources: sources}
	}
	mine := named("team", "web", "fleet")
	for name, tc := range map[string]struct {
		of     *kustomizev1.Kustomization // mine if nil
		other  *kustomizev1.Kustomization // whom the labels name
		wants  bool                       // the other, at the revision, as a sibling
		change applier.Change
		want   sharing.Found
	}{
		"one of the source wants it":                       {other: named("team", "other", "fleet"), wants: true, want: shared("team", "other")},
		"one of the source has it, and wants it no more":   {other: named("team", "other", "fleet")},
		"one of another source has applied it":             {other: named("team", "other", "apps"), want: shared("team", "other", key("team", "apps"))},
		"labels name one that has not":                     {other: named("team", "other", "apps", without)},
		"one of another source is suspended":               {other: named("team", "other", "apps", suspended)},
		"one of another source is being deleted":           {other: named("team", "other", "apps", deleted)},
		"one of a source that cannot be applied":           {other: named("team", "other", "apps", unsupported)},
		"labels name one that is gone":                     {},
		"another tenant has applied it":                    {other: named("rival", "other", "apps"), want: shared("rival", "other", key("rival", "apps"))},
		"the control plane has applied it":                 {other: named(platform, "other", "apps"), want: shared(platform, "other", key(platform, "apps"))},
		"a tenant has what the control plane is to have":   {of: named(platform, "web", "fleet"), other: named("rival", "other", "apps")},
		"the control plane has it by another source":       {of: named(platform, "web", "fleet"), other: named(platform, "other", "apps"), want: shared(platform, "other", key(platform, "apps"))},
		"one of another source has it, and it is for many": {other: named("team", "other", "apps"), change: applier.Change{Shares: true}},
		"it is left as it is, and another one has it":      {other: named("team", "other", "apps"), change: applier.Change{Shares: true, Relabels: true}, want: sharing.Found{Borrows: true}},
		"it is left as it is, and given up":                {other: named("team", "other", "fleet"), change: applier.Change{Shares: true, Relabels: true}, want: sharing.Found{Takes: []int{0}}},
	} {
		t.Run(name, func(t *testing.T) {
			of := mine
			if tc.of != nil {
				of = tc.of
			}
			objects := []client.Object{of}
			tc.change.Owner = key("team", "gone")
			if tc.other != nil {
				objects, tc.change.Owner = append(objects, tc.other), client.ObjectKeyFromObject(tc.other)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
			rules := tenancy.Rules{PrivilegedNamespaces: []string{platform}}
			build := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (siblings.Wants, error) {
				if tc.wants {
					return siblings.Wants{Entries: []inventory.Entry{reader}}, nil
				}
				return siblings.Wants{}, nil
			}
			tc.change.Desired = &unstructured.Unstructured{}
			tc.change.Desired.SetGroupVersionKind(reader.GroupVersionKind())
			tc.change.Desired.SetNamespace(reader.ID.Namespace)
			tc.change.Desired.SetName(reader.ID.Name)
			got, err := sharing.Finder{Hub: hub, Siblings: siblings.New(hub, build, wanted.Eligible(rules)), Privileged: wanted.Privileged(rules)}.Find(t.Context(), sharing.Query{
				Of: of, At: siblings.Artifact{Source: inventory.SourceOf(of), Digest: "sha256:2", Revision: "main@sha1:2"}, Changes: []applier.Change{tc.change},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
