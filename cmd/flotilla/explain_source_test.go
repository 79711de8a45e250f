package main

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// TestAnExplanationKnowsWhatIsInGit: what is on the control plane may be older than what is in Git. Labels that only
// say whose an object is are no evidence.
func TestAnExplanationKnowsWhatIsInGit(t *testing.T) {
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("apps/v1")
	web.SetKind("Deployment")
	web.SetNamespace("shop")
	web.SetName("web")
	web.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "app"}))
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
	source.Status.Artifact = &meta.Artifact{Revision: "main@sha1:2222222222222222222222222222222222222222"}
	for name, tc := range map[string]struct {
		owned []inventory.Entry
		want  []string
	}{
		"its Kustomization is suspended": {owned: []inventory.Entry{{ID: inventory.IDOf(web), Version: "v1"}}, want: []string{"KustomizationSuspended", "Unhealthy"}},
		"it is of none":                  {want: []string{"Unhealthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			ks.Spec = kustomizev1.KustomizationSpec{Suspend: true, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: "fleet"}}
			ks.Status = kustomizev1.KustomizationStatus{LastAppliedRevision: "main@sha1:1111111111111111111111111111111111111111", Inventory: inventory.Record(tc.owned)}
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ks, source).Build()
			var got []string
			for _, p := range behind(t.Context(), hub, web, explain.Explanation{Problems: []explain.Problem{{Reason: "Unhealthy"}}}).Problems {
				got = append(got, p.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnExplanationKnowsWhatHasLeftGit: an object that was removed from Git and stays may be healthy, but follows no commit any more.
func TestAnExplanationKnowsWhatHasLeftGit(t *testing.T) {
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("apps/v1")
	web.SetKind("Deployment")
	web.SetNamespace("shop")
	web.SetName("web")
	web.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "app"}))
	id := inventory.IDOf(web)
	other := inventory.ID{GroupKind: id.GroupKind, Namespace: "shop", Name: "other"}
	const undecided = "Applied revision main@sha1:2222222222222222222222222222222222222222; Deployment/shop/web left this one and stays: nobody can tell whether Kustomization team/two wants it, as that cannot be built"
	left := []explain.Problem{{
		Reason:  "LeftGit",
		Message: "it has left the files of Kustomization team/app, as of revision main@sha1:22222222, and stays for now: Applied revision main@sha1:22222222; Deployment/shop/web left this one and stays: nobody can tell whether Kustomization team/two wants it, as that cannot be built",
		Next:    "flotilla trace kustomization/app -n team says what it waits for; commit it again to keep it",
	}}
	for name, tc := range map[string]struct {
		leaving []inventory.ID
		reason  string
		want    []explain.Problem
	}{
		"it has left, and stays": {[]inventory.ID{other, id}, "HandingOver", left},
		"another one has left":   {[]inventory.ID{other}, "Progressing", nil},
		"nothing has left":       {nil, "ReconciliationSucceeded", nil},
	} {
		t.Run(name, func(t *testing.T) {
			ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
			ks.Status.LastAttemptedRevision = "main@sha1:2222222222222222222222222222222222222222"
			ks.Status.Inventory = inventory.Record([]inventory.Entry{{ID: id, Version: "v1"}})
			ks.Status.History = meta.History{{Metadata: map[string]string{}}}
			ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Reason: tc.reason, Message: undecided}}
			inventory.RecordLeaving(&ks.Status, tc.leaving, tc.leaving, true)
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ks).Build()
			if diff := cmp.Diff(tc.want, behind(t.Context(), hub, web, explain.Explanation{}).Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnExplanationNamesAllWhoHaveIt: one that is in two Kustomizations is of one, and the other one waits for that.
func TestAnExplanationNamesAllWhoHaveIt(t *testing.T) {
	web := &unstructured.Unstructured{}
	web.SetAPIVersion("apps/v1")
	web.SetKind("Deployment")
	web.SetNamespace("shop")
	web.SetName("web")
	web.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "app"}))
	of := func(name, reason, message string) *kustomizev1.Kustomization {
		ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		ks.Status.LastAttemptedRevision = "main@sha1:2222222222222222222222222222222222222222"
		ks.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
		return ks
	}
	const stands = " stands in Kustomization team/app and in team/other: remove it from one of them; until then revision main@sha1:2 is not applied here"
	app := of("app", meta.ReconciliationSucceededReason, "")
	app.Status.Conditions[0].Status = metav1.ConditionTrue
	app.Status.Inventory = inventory.Record([]inventory.Entry{{ID: inventory.IDOf(web), Version: "v1"}})
	for name, tc := range map[string]struct {
		other     *kustomizev1.Kustomization
		forbidden bool
		want      []explain.Problem
	}{
		"another one has it": {other: of("other", "SharedObject", "Deployment/shop/web"+stands), want: []explain.Problem{{
			Reason: "SharedObject", Message: "it stands in Kustomization team/app, which has applied it, and in team/other, which does not apply revision main@sha1:22222222 for that",
			Next: "remove it from the files of one of them and commit; flotilla trace kustomization/other -n team says where these are",
		}}},
		"another one has something else": {other: of("other", "SharedObject", "Deployment/shop/web-2"+stands)},
		"another one is refused":         {other: of("other", "BuildFailed", "Deployment/shop/web"+stands)},
		"they may not be listed":         {other: of("other", "SharedObject", "Deployment/shop/web"+stands), forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(app.DeepCopy(), tc.other).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.forbidden {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "kustomizations"}, "", nil)
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			if diff := cmp.Diff(tc.want, behind(t.Context(), hub, web, explain.Explanation{}).Problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
