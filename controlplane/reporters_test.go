package controlplane_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNobodyReportsInTheControlPlanesName: who may write Events in a namespace has
// neither the control plane nor an agent say what they did not.
func TestNobodyReportsInTheControlPlanesName(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	who := tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"})
	reported := func(component string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "told."},
			InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: namespace, Name: "settings"},
			Reason:         "ApplySucceed", Message: "all is well", Type: corev1.EventTypeNormal,
			Source: corev1.EventSource{Component: component}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
		}
	}
	newer := func(component string) *eventsv1.Event {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "newer." + component}, EventTime: metav1.NewMicroTime(time.Now()),
			ReportingController: component, ReportingInstance: "x", Action: "Apply", Reason: "ApplySucceed", Note: "all is well", Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{Kind: "ConfigMap", APIVersion: "v1", Namespace: namespace, Name: "settings"},
		}
	}
	poll(t, "the tenant gets his rights", func() bool { return who.Create(t.Context(), reported("my-controller"), client.DryRunAll) == nil })
	real := reported("flotilla")
	real.Name = "real"
	if err := env.Hub.Create(t.Context(), real); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"as the control plane":            who.Create(t.Context(), reported("flotilla")),
		"as an agent":                     who.Create(t.Context(), reported("flotilla-agent")),
		"by a name that looks the same":   who.Create(t.Context(), reported("flotilla\u200b")),
		"by one with a blank":             who.Create(t.Context(), reported("Flotilla ")),
		"as the control plane, newer":     who.Create(t.Context(), newer("flotilla")),
		"what the control plane has told": who.Patch(t.Context(), real.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"message":"not so","source":{"component":"mine"}}`))),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "take another name") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"in his own name":        who.Create(t.Context(), reported("my-controller")),
		"in his own name, newer": who.Create(t.Context(), newer("my-controller")),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
