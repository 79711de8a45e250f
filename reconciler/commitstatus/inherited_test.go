package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestWhatOthersHaveOfSecretsIsNotReported: of an Alert, and of a Kustomization, that another one put text of a Secret into.
func TestWhatOthersHaveOfSecretsIsNotReported(t *testing.T) {
	const canary = "canary7f3a9"
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, Annotations: map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}}
	}
	alert := &notificationv1beta3.Alert{ObjectMeta: named("a"), Spec: notificationv1beta3.AlertSpec{
		ProviderRef: meta.LocalObjectReference{Name: canary}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}},
	}}
	ks := &kustomizev1.Kustomization{ObjectMeta: named("shop"), Spec: kustomizev1.KustomizationSpec{DependsOn: []kustomizev1.DependencyReference{{Name: canary}}}}
	like := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "canary7f3a8"}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(alert, ks, like).Build()
	var events eventList
	if _, err := New(hub, nil, &events, Options{}).read(t.Context(), &state{key: client.ObjectKeyFromObject(ks)}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(eventList{"ProviderNotReady: no commit is told of for Alert a: the Provider *** does not exist: create it, or correct the Alert"}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	waits, err := waitingFor(t.Context(), hub, []kustomizev1.Kustomization{*ks}, nil)
	if diff := cmp.Diff(map[string]missing{"shop": {name: "***"}}, waits, cmp.AllowUnexported(missing{})); err != nil || diff != "" {
		t.Errorf("what it waits for (-want +got):\n%s%v", diff, err)
	}
}
