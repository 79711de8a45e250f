package message_test

import (
	"testing"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/message"
)

// TestOfProvider: what the spec alone says is known before the first message is lost.
func TestOfProvider(t *testing.T) {
	secret := &meta.LocalObjectReference{Name: "s"}
	const address = "https://chat.example.com/x"
	for name, tc := range map[string]struct {
		spec notificationv1beta3.ProviderSpec
		want []string
	}{
		"it is complete":                    {spec: notificationv1beta3.ProviderSpec{Type: "generic", Address: address}},
		"its Secret may have the address":   {spec: notificationv1beta3.ProviderSpec{Type: "slack", SecretRef: secret}},
		"a forge is another matter":         {spec: notificationv1beta3.ProviderSpec{Type: "github"}},
		"it has no address":                 {notificationv1beta3.ProviderSpec{Type: "slack"}, []string{"spec.address: it has no address: set spec.address, or the key address of its Secret"}},
		"its address is none":               {notificationv1beta3.ProviderSpec{Type: "generic", Address: "chat.example.com"}, []string{"spec.address: its address is no URL that begins with https:// or http://"}},
		"the channel of Matrix is a name":   {notificationv1beta3.ProviderSpec{Type: "matrix", Address: address, Channel: "#room", SecretRef: secret}, []string{"spec.channel: it needs spec.channel, the ID of a room such as !abc:matrix.org"}},
		"an integration may be in a Secret": {spec: notificationv1beta3.ProviderSpec{Type: "pagerduty", SecretRef: secret}},
		"it names no integration":           {notificationv1beta3.ProviderSpec{Type: "pagerduty"}, []string{"spec.channel: it needs spec.channel, the key of an integration of the Events API v2, or the key token in its Secret"}},
		"it has nothing to sign by":         {notificationv1beta3.ProviderSpec{Type: "generic-hmac", Address: address}, []string{"spec.secretRef: it names no Secret, and generic-hmac needs one: create it with the key token, and name it here"}},
		"its type is not served": {notificationv1beta3.ProviderSpec{Type: "opsgenie"}, []string{
			"spec.type: opsgenie is not served yet, and nothing is sent: use one of alertmanager, discord, generic, generic-hmac, githubdispatch, googlechat, grafana, matrix, msteams, pagerduty, slack"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, f := range message.OfProvider(&notificationv1beta3.Provider{Spec: tc.spec}) {
				got = append(got, f.Path+": "+f.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
