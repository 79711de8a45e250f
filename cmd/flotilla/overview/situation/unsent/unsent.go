// Package unsent finds Alerts and Providers of which nothing is sent, as the control plane does not serve what they name, or lacks it.
//
// In go Alerts with their Events, and Providers; out comes what has no effect in them, or keeps messages from arriving. Read takes them from the control plane; it writes nothing.
package unsent

import (
	"fmt"
	"strings"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// Cause is a Provider or an Alert, and what in it has no effect, or, without a path, what keeps its messages from arriving.
type Cause struct {
	Kind, Namespace, Name string
	alerting.Fault
}

// Says returns what is the matter.
func (c Cause) Says() string {
	if c.Path == "" {
		return c.Message
	}
	return c.Path + ": " + c.Message
}

// Next returns what to do about it.
func (c Cause) Next() string {
	if c.Path == "" {
		return fmt.Sprintf("put right what it says; the next message that arrives ends this: flotilla events --for alert/%s -n %s", c.Name, c.Namespace)
	}
	return fmt.Sprintf("correct it: flotilla edit %s %s -n %s", strings.ToLower(c.Kind), c.Name, c.Namespace)
}

// Alerts are those of a control plane, with their Providers. The zero value is empty.
type Alerts struct {
	alerts    []*notificationv1beta3.Alert
	providers []*notificationv1beta3.Provider
	// Blind says that Providers could not be read.
	Blind bool
	// last is the last Event of each Alert about its messages.
	last map[client.ObjectKey]*corev1.Event
}

// Event adds an Event of an Alert.
func (a *Alerts) Event(e *corev1.Event) {
	key := client.ObjectKey{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
	last := a.last[key]
	if e.Reason != alerting.ReasonMessageNotSent && e.Reason != alerting.ReasonMessageSent || last != nil && e.LastTimestamp.Before(&last.LastTimestamp) {
		return
	}
	if a.last == nil {
		a.last = map[client.ObjectKey]*corev1.Event{}
	}
	a.last[key] = e
}

// Alert adds an Alert.
func (a *Alerts) Alert(alert *notificationv1beta3.Alert) {
	if !alert.Spec.Suspend {
		a.alerts = append(a.alerts, alert)
	}
}

// Provider adds a Provider.
func (a *Alerts) Provider(p *notificationv1beta3.Provider) { a.providers = append(a.providers, p) }

// Causes returns what has no effect in Providers, and in Alerts. Of a suspended Provider it says nothing.
func (a *Alerts) Causes() []Cause {
	var out []Cause
	purposes, names := map[client.ObjectKey]alerting.Purpose{}, map[string][]string{}
	for _, p := range a.providers {
		purposes[client.ObjectKeyFromObject(p)] = alerting.PurposeOf(p.Spec.Type)
		names[p.Namespace] = append(names[p.Namespace], p.Name)
		if p.Spec.Suspend {
			continue
		}
		for _, fault := range message.OfProvider(p) {
			out = append(out, Cause{notificationv1beta3.ProviderKind, p.Namespace, p.Name, fault})
		}
	}
	for _, alert := range a.alerts {
		if e := a.last[client.ObjectKeyFromObject(alert)]; e != nil && e.Reason == alerting.ReasonMessageNotSent {
			out = append(out, Cause{notificationv1beta3.AlertKind, alert.Namespace, alert.Name, alerting.Fault{Message: e.Reason + ": " + excerpt.Line(e.Message)}})
		}
		add := func(fault alerting.Fault) {
			out = append(out, Cause{notificationv1beta3.AlertKind, alert.Namespace, alert.Name, fault})
		}
		provider := alert.Spec.ProviderRef.Name
		purpose, found := purposes[client.ObjectKey{Namespace: alert.Namespace, Name: provider}]
		if !found && !a.Blind {
			add(alerting.Fault{Path: "spec.providerRef", Message: "the Provider " + provider + " does not exist, and nothing is sent" +
				propagation.DidYouMean(propagation.Nearest(provider, names[alert.Namespace])) + ": create it, or correct the name"})
		}
		if purpose == alerting.Unserved { // what of the rest would count once it is served, or there
			purpose = alerting.Messages
		}
		// Which namespaces an Alert may name only the control plane knows: its Event says it.
		for _, fault := range alerting.OfAlert(alert, alerting.Scope{CrossNamespace: true}, purpose) {
			add(fault)
		}
	}
	return out
}
