package message

import (
	"slices"
	"strings"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// OfProvider returns what in a Provider keeps all of its messages from being sent, as far as its spec says that: what its Secret
// holds is not known here.
func OfProvider(of *notificationv1beta3.Provider) []alerting.Fault {
	spec := of.Spec
	if alerting.PurposeOf(spec.Type) != alerting.Messages {
		return alerting.OfProvider(of)
	}
	var out []alerting.Fault
	add := func(path string, err error) {
		if err != nil {
			out = append(out, alerting.Fault{Path: path, Message: strings.TrimPrefix(err.Error(), ErrProvider.Error()+": ")})
		}
	}
	p := Provider{Type: spec.Type, Address: spec.Address, Channel: spec.Channel}
	if p.Address != "" || spec.SecretRef == nil {
		at, err := p.address()
		if err == nil && spec.Type == notificationv1beta3.GitHubDispatchProvider {
			_, _, err = repositoryOf(at)
		}
		add("spec.address", err)
	}
	switch spec.Type {
	case notificationv1beta3.Matrix:
		add("spec.channel", p.room())
	case notificationv1beta3.PagerDutyProvider:
		if spec.SecretRef == nil {
			_, err := p.integration()
			add("spec.channel", err)
		}
	}
	withToken := []string{notificationv1beta3.GenericHMACProvider, notificationv1beta3.Matrix, notificationv1beta3.GitHubDispatchProvider}
	if spec.SecretRef == nil && slices.Contains(withToken, spec.Type) {
		out = append(out, alerting.Fault{Path: "spec.secretRef", Message: "it names no Secret, and " + spec.Type + " needs one: create it with the key token, and name it here"})
	}
	return out
}
