package lint

import (
	"fmt"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// alerts reports what has no effect in Alerts and Providers.
func alerts(l *linter) {
	purposes, names := map[client.ObjectKey]alerting.Purpose{}, map[string][]string{}
	for _, o := range l.objects {
		provider := &notificationv1beta3.Provider{}
		if !reads(o, notificationv1beta3.ProviderKind, provider) {
			continue
		}
		purposes[client.ObjectKey{Namespace: o.namespace, Name: o.name}] = alerting.PurposeOf(provider.Spec.Type)
		names[o.namespace] = append(names[o.namespace], o.name)
		for _, fault := range message.OfProvider(provider) {
			l.add(o, Warning, fault.Path, fault.Message)
		}
	}
	for _, o := range l.objects {
		alert := &notificationv1beta3.Alert{}
		if !reads(o, notificationv1beta3.AlertKind, alert) {
			continue
		}
		name := alert.Spec.ProviderRef.Name
		purpose, found := purposes[client.ObjectKey{Namespace: o.namespace, Name: name}]
		if !found && len(names[o.namespace]) > 0 {
			l.add(o, Warning, "spec.providerRef", fmt.Sprintf("the Provider %s is not in these files, and nothing is sent without it%s: add it, or ignore this if it is elsewhere",
				name, propagation.DidYouMean(propagation.Nearest(name, names[o.namespace]))))
		}
		if purpose == alerting.Unserved {
			purpose = alerting.Messages // it is elsewhere, or to be of another type
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
