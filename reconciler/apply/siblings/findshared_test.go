package siblings_test

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

const platform = "flux-system" // whose Kustomizations act as the control plane

var reader = inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "reader", GroupKind: schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}}, Version: "v1"}

// kustomization returns a Kustomization that has applied the Role.
func kustomization(namespace, name, source string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	ks.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: source}
	ks.Status.Inventory = inventory.Record([]inventory.Entry{reader})
	return ks
}

func keyIn(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// TestWhatOthersHold: who of a source wants an object keeps it. Between sources who applies last has it.
func TestWhatOthersHold(t *testing.T) {
	shared := func(namespace, name string) siblings.SharedObjects {
		return siblings.SharedObjects{Shared: []siblings.Shared{{ID: reader.ID, With: keyIn(namespace, name)}}}
	}
	mine := kustomization("team", "web", "fleet")
	for name, tc := range map[string]struct {
		other  *kustomizev1.Kustomization // whom the labels name
		wants  bool                       // the other, at the revision, as a sibling
		change applier.Change
		want   siblings.SharedObjects
	}{
		"one of the source wants it":                     {other: kustomization("team", "other", "fleet"), wants: true, want: shared("team", "other")},
		"one of the source has it, and wants it no more": {other: kustomization("team", "other", "fleet")},
		"one of another source has applied it":           {other: kustomization("team", "other", "apps")},
		"labels name one that is gone":                   {},
		"one of the source has it, and it is for many":   {other: kustomization("team", "other", "fleet"), wants: true, change: applier.Change{Shares: true}},
		"it is left as it is, and another one has it":    {other: kustomization("team", "other", "apps"), change: applier.Change{Shares: true, Relabels: true}, want: siblings.SharedObjects{Borrows: true}},
		"it is left as it is, and given up":              {other: kustomization("team", "other", "fleet"), change: applier.Change{Shares: true, Relabels: true}, want: siblings.SharedObjects{Takes: []int{0}}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{mine}
			tc.change.Owner = keyIn("team", "gone")
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
			got, err := siblings.FindShared(t.Context(), siblings.New(hub, build, siblings.EligibleBy(rules)), siblings.SharedQuery{
				Of: mine, At: siblings.Artifact{Source: inventory.SourceOf(mine), Digest: "sha256:2", Revision: "main@sha1:2"}, Changes: []applier.Change{tc.change},
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

// TestWhatAnotherOneGivesUpWithItsNextSpec: what an object is left as it is for counts by the spec that the revision gives its Kustomization.
func TestWhatAnotherOneGivesUpWithItsNextSpec(t *testing.T) {
	mine, other := kustomization("team", "web", "fleet"), kustomization("team", "other", "fleet")
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(mine, other).Build()
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		if ks.Spec.Path == "./elsewhere" {
			return siblings.Wants{}, nil
		}
		return siblings.Wants{Entries: []inventory.Entry{reader}}, nil
	}
	role := &unstructured.Unstructured{}
	role.SetGroupVersionKind(reader.GroupVersionKind())
	role.SetNamespace(reader.ID.Namespace)
	role.SetName(reader.ID.Name)
	for name, tc := range map[string]struct {
		path string
		want siblings.SharedObjects
	}{
		"it holds it as before": {"./here", siblings.SharedObjects{Borrows: true}},
		"it holds it no more":   {"./elsewhere", siblings.SharedObjects{Takes: []int{0}}},
	} {
		t.Run(name, func(t *testing.T) {
			next := other.DeepCopy()
			next.Spec.Path = tc.path
			desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
			if err != nil {
				t.Fatal(err)
			}
			led := &unstructured.Unstructured{Object: desired}
			led.SetGroupVersionKind(kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind))
			rules := tenancy.Rules{PrivilegedNamespaces: []string{platform}}
			got, err := siblings.FindShared(t.Context(), siblings.New(hub, build, siblings.EligibleBy(rules)), siblings.SharedQuery{
				Of: mine, At: siblings.Artifact{Source: inventory.SourceOf(mine), Digest: "sha256:2", Revision: "main@sha1:2"}, Changes: []applier.Change{
					{Desired: role, Owner: keyIn("team", "other"), Shares: true, Relabels: true}, {Desired: led, Action: applier.Configured},
				},
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
