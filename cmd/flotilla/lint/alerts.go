package lint

import (
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// alerts reports what has no effect in Alerts and Providers.
func alerts(l *linter) {
	purposes := map[client.ObjectKey]alerting.Purpose{}
	for _, o := range l.objects {
		provider := &notificationv1beta3.Provider{}
		if !reads(o, notificationv1beta3.ProviderKind, provider) {
			continue
		}
		purposes[client.ObjectKey{Namespace: o.namespace, Name: o.name}] = alerting.PurposeOf(provider.Spec.Type)
		for _, fault := range alerting.OfProvider(provider) {
			l.add(o, Warning, fault.Path, fault.Message)
		}
	}
	for _, o := range l.objects {
		alert := &notificationv1beta3.Alert{}
		if !reads(o, notificationv1beta3.AlertKind, alert) {
			continue
		}
		purpose, found := purposes[client.ObjectKey{Namespace: o.namespace, Name: alert.Spec.ProviderRef.Name}]
		if !found {
			purpose = alerting.Messages // it is elsewhere
		}
		// Which namespaces an Alert may name only the control plane knows.
		for _, fault := range alerting.OfAlert(alert, alerting.Scope{CrossNamespace: true}, purpose) {
			l.add(o, Warning, fault.Path, fault.Message)
		}
	}
}

// reads reads an object, if it is one of a kind of notifications, and complete.
func reads(o *object, kind string, into any) bool {
	if o.gvk != notificationv1beta3.GroupVersion.WithKind(kind) || o.patch {
		return false
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.doc.Fields, into) == nil // the check of the schema reports that
}
