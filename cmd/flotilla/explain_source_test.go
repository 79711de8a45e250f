package main

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
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

// TestAnExplanationKnowsWhatBecomesOfItself: what the control plane acts on by itself is carried by nobody, and may not be ready all the same.
func TestAnExplanationKnowsWhatBecomesOfItself(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "team", Name: "web", Generation: 1}
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: meta.ReadyCondition, Status: status, Reason: reason, Message: message, ObservedGeneration: 1}}
	}
	ks := func(status metav1.ConditionStatus, reason, message string) client.Object {
		out := &kustomizev1.Kustomization{TypeMeta: metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind}, ObjectMeta: named}
		out.Status.ObservedGeneration, out.Status.Conditions = 1, ready(status, reason, message)
		return out
	}
	source := &sourcev1.GitRepository{TypeMeta: metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind}, ObjectMeta: named}
	source.Status.ObservedGeneration, source.Status.Conditions = 1, ready(metav1.ConditionFalse, "GitOperationFailed", "no such branch")
	made := &sourcev1.ExternalArtifact{TypeMeta: metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.ExternalArtifactKind}, ObjectMeta: named}
	made.Annotations = map[string]string{gitopsv1alpha1.FetchedAnnotation: "sha256:1"}
	made.Status.Artifact = &meta.Artifact{Revision: "v1@sha256:1", Digest: "sha256:1"}
	hook := &notificationv1.Receiver{TypeMeta: metav1.TypeMeta{APIVersion: notificationv1.GroupVersion.String(), Kind: notificationv1.ReceiverKind}, ObjectMeta: named}
	hook.Status.Conditions = ready(metav1.ConditionFalse, "NotListening", "nobody listens")
	fresh := &kustomizev1.Kustomization{TypeMeta: metav1.TypeMeta{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind}, ObjectMeta: named}
	for name, tc := range map[string]struct {
		obj  client.Object
		want []string // the reason, and what is wrong
		next bool
	}{
		"a path that does not exist":    {ks(metav1.ConditionFalse, "PathNotFound", "there is no ./ap"), []string{"PathNotFound", "it is not ready: there is no ./ap"}, true},
		"a cluster that does not exist": {ks(metav1.ConditionFalse, "UnknownCluster", "clusterNames names m2"), []string{"UnknownCluster", "it is not ready: clusterNames names m2"}, true},
		"it waits for its health":       {ks(metav1.ConditionUnknown, "Progressing", "Running health checks"), []string{"Progressing", "it is not ready: Running health checks"}, true},
		"nobody has looked yet":         {fresh, []string{"NotReady", "it is not ready: nobody has looked at it yet"}, true},
		"it is ready":                   {ks(metav1.ConditionTrue, "ReconciliationSucceeded", "Applied"), nil, false},
		"a source that is not ready":    {source, []string{"GitOperationFailed", "it is not ready: no such branch"}, true},
		"one that others make":          {made, nil, false},
		"a Receiver nobody hears":       {hook, []string{"NotListening", "it is not ready: nobody listens"}, true},
		"another kind":                  {&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: named}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			next := false
			for _, p := range itself(&unstructured.Unstructured{Object: fields}, explain.Explanation{}).Problems {
				got, next = append(got, p.Reason, p.Message), p.Next != ""
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || next != tc.next {
				t.Errorf("with a next step: %t (-want +got):\n%s", next, diff)
			}
		})
	}
}
