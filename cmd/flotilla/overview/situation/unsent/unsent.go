// Package unsent finds Alerts and Providers of which nothing is sent, as the control plane does not serve what they name.
//
// In go Alerts and Providers; out comes what has no effect in them. It reads nothing and writes nothing.
package unsent

import (
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// Cause is a Provider or an Alert, and what in it has no effect.
type Cause struct {
	Kind, Namespace, Name string
	alerting.Fault
}

// Alerts are those of a control plane, with their Providers. The zero value is empty.
type Alerts struct {
	alerts    []*notificationv1beta3.Alert
	providers []*notificationv1beta3.Provider
}

// Alert adds an Alert.
func (a *Alerts) Alert(alert *notificationv1beta3.Alert) {
	if !alert.Spec.Suspend {
		a.alerts = append(a.alerts, alert)
	}
}

// Provider adds a Provider.
func (a *Alerts) Provider(p *notificationv1beta3.Provider) {
	if !p.Spec.Suspend {
		a.providers = append(a.providers, p)
	}
}

// Causes returns what has no effect in Providers, and in Alerts whose Provider is there.
func (a *Alerts) Causes() []Cause {
	var out []Cause
	purposes := map[client.ObjectKey]alerting.Purpose{}
	for _, p := range a.providers {
		purposes[client.ObjectKeyFromObject(p)] = alerting.PurposeOf(p.Spec.Type)
		for _, fault := range alerting.OfProvider(p) {
			out = append(out, Cause{notificationv1beta3.ProviderKind, p.Namespace, p.Name, fault})
		}
	}
	for _, alert := range a.alerts {
		purpose, found := purposes[client.ObjectKey{Namespace: alert.Namespace, Name: alert.Spec.ProviderRef.Name}]
		if !found || purpose == alerting.Unserved {
			continue
		}
		// Which namespaces an Alert may name only the control plane knows: its Event says it.
		for _, fault := range alerting.OfAlert(alert, alerting.Scope{CrossNamespace: true}, purpose) {
			out = append(out, Cause{notificationv1beta3.AlertKind, alert.Namespace, alert.Name, fault})
		}
	}
	return out
}
