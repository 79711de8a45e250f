package siblings_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestWhoIsLedElsewhereWaits: a commit swaps the folders of parent and child. Until the one above has given the
// parent its new folder it drops its child by the old one, which it keeps by the new.
func TestWhoIsLedElsewhereWaits(t *testing.T) {
	root, child := kustomization(platform, "root", "fleet"), kustomization(platform, "a", "fleet")
	child.Labels, child.Spec.Path = inventory.OwnerLabels(client.ObjectKeyFromObject(root)), "./f1"
	at := siblings.Artifact{Source: inventory.SourceOf(root), Digest: "sha256:2", Revision: "main@sha1:2"}
	waits := "waiting for Kustomization flux-system/root, which gives this one another spec at revision main@sha1:2: until then nothing of it is applied"
	attempted := func(ready, healthy string) func(*kustomizev1.Kustomization) {
		return func(ks *kustomizev1.Kustomization) {
			ks.Status.LastAttemptedRevision = at.Revision
			ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Reason: ready}, {Type: meta.HealthyCondition, Reason: healthy}}
		}
	}
	for name, tc := range map[string]struct {
		to      string // the folder that the root gives it
		root    func(*kustomizev1.Kustomization)
		broken  bool
		same    bool
		age     time.Duration
		want    string
		quietly time.Duration
	}{
		"it is led elsewhere":                           {to: "./f2", age: time.Minute, want: waits},
		"it is led elsewhere, by what was just fetched": {to: "./f2", age: time.Second, quietly: 2 * time.Second},
		"it stays where it is":                          {to: "./f1", age: time.Minute},
		"the root does not hold it any more":            {age: time.Minute},
		"the root cannot be built":                      {to: "./f2", broken: true, age: time.Minute},
		"the root has applied the revision":             {to: "./f2", age: time.Minute, root: func(ks *kustomizev1.Kustomization) { ks.Status.LastAppliedRevision = at.Revision }},
		"the root has applied it by another spec": {to: "./f2", age: time.Minute, want: waits, root: func(ks *kustomizev1.Kustomization) {
			ks.Status.LastAppliedRevision, ks.Generation = at.Revision, 1
		}},
		"the root waits for health":           {to: "./f2", age: time.Minute, root: attempted(meta.ProgressingReason, meta.ProgressingReason)},
		"the root waits for a kind":           {to: "./f2", age: time.Minute, root: attempted(meta.ProgressingReason, "Other"), want: waits},
		"the root reads nothing that changes": {to: "./f2", age: time.Minute, same: true},
		"the root is refused":                 {to: "./f2", age: time.Minute, root: attempted("PruneBlocked", ""), want: waits},
		"the root is suspended":               {to: "./f2", age: time.Minute, root: suspended},
		"the root waits for it": {to: "./f2", age: time.Minute, root: func(ks *kustomizev1.Kustomization) {
			ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "a"}}
		}},
		"the root waits for one that waits for it": {to: "./f2", age: time.Minute, root: func(ks *kustomizev1.Kustomization) {
			ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "between"}}
		}},
		"the root waits for another one": {to: "./f2", age: time.Minute, want: waits, root: func(ks *kustomizev1.Kustomization) {
			ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "root"}, {Name: "nobody"}}
		}},
		"the root applies another source": {to: "./f2", age: time.Minute, root: func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" }},
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
			between := kustomization(platform, "between", "fleet")
			between.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "a"}}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(above, child.DeepCopy(), between).Build()
			index := siblings.New(hub, build, siblings.EligibleBy(tenancy.Rules{PrivilegedNamespaces: []string{platform}}))
			differs := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (bool, error) {
				return !tc.same, nil
			}
			got := ""
			quietly, err := siblings.Await(t.Context(), index, siblings.Wait{Of: child, At: at, Age: tc.age, Differs: differs})
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || quietly != tc.quietly {
				t.Errorf("%q and %s, want %q and %s", got, quietly, tc.want, tc.quietly)
			}
		})
	}
}

// TestWhoIsLedByAGrandparent: a commit gives the parent another folder, by which that gives the child another one.
func TestWhoIsLedByAGrandparent(t *testing.T) {
	root, mid, leaf := kustomization(platform, "root", "fleet"), kustomization(platform, "mid", "fleet"), kustomization(platform, "leaf", "fleet")
	mid.Labels, mid.Spec.Path = inventory.OwnerLabels(client.ObjectKeyFromObject(root)), "./mid1"
	leaf.Labels, leaf.Spec.Path = inventory.OwnerLabels(client.ObjectKeyFromObject(mid)), "./leaf1"
	at := siblings.Artifact{Source: inventory.SourceOf(root), Digest: "sha256:2", Revision: "main@sha1:2"}
	mid.Status.LastAppliedRevision = at.Revision // by the folder that it has, nothing changes
	build := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (siblings.Wants, error) {
		next := map[string]*kustomizev1.Kustomization{"root": mid.DeepCopy(), "mid": leaf.DeepCopy()}[ks.Name]
		if next == nil {
			return siblings.Wants{}, nil
		}
		if next.Spec.Path = "./mid2"; ks.Name == "mid" {
			next.Spec.Path = "./leaf" + strings.TrimPrefix(ks.Spec.Path, "./mid")
		}
		return siblings.Wants{Children: []*kustomizev1.Kustomization{next}}, nil
	}
	for name, tc := range map[string]struct {
		root  string // the revision that it has applied
		waits bool
	}{
		"the root has yet to apply it": {"main@sha1:1", true},
		"the root has applied it":      {at.Revision, false},
	} {
		t.Run(name, func(t *testing.T) {
			above := root.DeepCopy()
			above.Status.LastAppliedRevision = tc.root
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(above, mid.DeepCopy(), leaf.DeepCopy()).Build()
			index := siblings.New(hub, build, siblings.EligibleBy(tenancy.Rules{PrivilegedNamespaces: []string{platform}}))
			differs := func(_ context.Context, ks *kustomizev1.Kustomization, _ siblings.Artifact) (bool, error) {
				return ks.Name == "root", nil
			}
			_, err := siblings.Await(t.Context(), index, siblings.Wait{Of: leaf, At: at, Age: time.Minute, Differs: differs})
			if waits := err != nil && strings.Contains(err.Error(), "waiting for Kustomization flux-system/mid"); waits != tc.waits || (err != nil) != tc.waits {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestWhoseVariablesAreYetToCome: a commit changes variables that another Kustomization holds.
func TestWhoseVariablesAreYetToCome(t *testing.T) {
	infra, app := kustomization(platform, "infra", "fleet"), kustomization(platform, "app", "fleet")
	app.Spec.PostBuild = &kustomizev1.PostBuild{SubstituteFrom: []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "vars"}}}
	vars := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: platform, Name: "vars", Labels: inventory.OwnerLabels(client.ObjectKeyFromObject(infra))}}
	at := siblings.Artifact{Source: inventory.SourceOf(infra), Digest: "sha256:2", Revision: "main@sha1:2"}
	const waits = "waiting for Kustomization flux-system/infra, which holds the ConfigMap vars of spec.postBuild.substituteFrom at revision main@sha1:2: until then nothing of it is applied"
	ready := func(status metav1.ConditionStatus, reason string) func(*kustomizev1.Kustomization) {
		return func(ks *kustomizev1.Kustomization) {
			ks.Status.LastAttemptedRevision = at.Revision
			ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: status, Reason: reason}}
		}
	}
	for name, tc := range map[string]struct {
		infra func(*kustomizev1.Kustomization)
		same  bool
		want  string
	}{
		"it has yet to apply them":             {want: waits},
		"it may not yet":                       {infra: ready(metav1.ConditionFalse, meta.DependencyNotReadyReason), want: waits},
		"it is about to":                       {infra: ready(metav1.ConditionUnknown, meta.ProgressingReason), want: waits},
		"it is refused, and keeps what it has": {infra: ready(metav1.ConditionFalse, meta.BuildFailedReason)},
		"nothing of it changes":                {same: true},
		"it has applied them":                  {infra: func(ks *kustomizev1.Kustomization) { ks.Status.LastAppliedRevision = at.Revision }},
		"it is suspended":                      {infra: suspended},
		"it has another source":                {infra: func(ks *kustomizev1.Kustomization) { ks.Spec.SourceRef.Name = "other" }},
		"it waits for this one": {infra: func(ks *kustomizev1.Kustomization) {
			ks.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "app"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			holder := infra.DeepCopy()
			if tc.infra != nil {
				tc.infra(holder)
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(holder, app.DeepCopy(), vars).Build()
			index := siblings.New(hub, nil, siblings.EligibleBy(tenancy.Rules{PrivilegedNamespaces: []string{platform}}))
			differs := func(context.Context, *kustomizev1.Kustomization, siblings.Artifact) (bool, error) {
				return !tc.same, nil
			}
			got := ""
			if _, err := siblings.Await(t.Context(), index, siblings.Wait{Of: app, At: at, Age: time.Minute, As: hub, Differs: differs}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
