package commitstatus

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// TestAnAlertWithoutAProvider: it is reported, once, and the other Alerts count all the same.
func TestAnAlertWithoutAProvider(t *testing.T) {
	alert := func(name, provider string) *notificationv1beta3.Alert {
		return &notificationv1beta3.Alert{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
			Spec:       notificationv1beta3.AlertSpec{ProviderRef: meta.LocalObjectReference{Name: provider}, EventSources: []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}}},
		}
	}
	provider := &notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "forge"}, Spec: notificationv1beta3.ProviderSpec{Type: "gitea", Address: "https://git.example.com/acme/fleet"}}
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(alert("a", "fogre"), alert("b", "forge"), provider, ks).Build()
	var events eventList
	r := New(hub, nil, &events, Options{})
	for range 2 {
		s := &state{key: client.ObjectKeyFromObject(ks)}
		if _, err := r.read(t.Context(), s); err != nil || len(s.targets) != 1 {
			t.Fatalf("%d targets, %v; want the one of the Provider that is there", len(s.targets), err)
		}
	}
	want := eventList{"ProviderNotReady: no commit is told of for Alert a: the Provider fogre does not exist (did you mean forge?): create it, or correct the Alert"}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// eventList are Events, as "reason: message".
type eventList []string

func (e *eventList) Event(_ runtime.Object, _, reason, message string) {
	*e = append(*e, reason+": "+message)
}
