package message_test

import (
	"strings"
	"testing"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"

	"github.com/flotilla-io/flotilla/policies/message"
)

// TestWhereDispatchesGo: to the API of the server on which the repository is, however its address is written.
func TestWhereDispatchesGo(t *testing.T) {
	const (
		github = "https://api.github.com/repos/acme/fleet/dispatches"
		own    = "https://git.example.com/api/v3/repos/acme/fleet/dispatches"
		form   = "its address must be https://github.com/<owner>/<repository>, or that of your own server"
		none   = "its address is no URL that begins with https:// or http://"
	)
	for address, want := range map[string]string{
		"https://github.com/acme/fleet":                github,
		"https://github.com/acme/fleet.git/":           github,
		"https://GitHub.com:443/acme/fleet":            github,
		"https://www.github.com/acme/fleet":            github,
		"https://bob:pw@github.com/acme/fleet?a=b#c":   github,
		"http://github.com/acme/fleet":                 github,
		"ssh://git@github.com/acme/fleet.git":          github,
		"git@github.com:acme/fleet.git":                github,
		"https://git.example.com/acme/fleet":           own,
		"ssh://git@git.example.com:2222/acme/fleet":    own,
		"git@git.example.com:/acme/fleet.git":          own,
		"http://git.example.com:8080/acme/fleet":       "http://git.example.com:8080/api/v3/repos/acme/fleet/dispatches",
		"ssh://git@[2001:db8::1]:22/acme/fleet":        "https://[2001:db8::1]/api/v3/repos/acme/fleet/dispatches",
		"https://github.com.evil.example/acme/fleet":   "https://github.com.evil.example/api/v3/repos/acme/fleet/dispatches",
		"https://github.com/acme/fl%2feet":             form,
		"https://github.com/acme":                      form,
		"https://github.com/acme/fleet/tree/main":      form,
		"https://github.com/acme/..":                   form,
		"ssh://git@github.com/acme":                    form,
		"git@github.com:fleet":                         form,
		"github.com/acme/fleet":                        none,
		"git://github.com/acme/fleet":                  none,
		"ssh:///acme/fleet":                            none,
		"git@github.com:acme/fleet git@evil.example:x": none,
	} {
		p := message.Provider{Type: "githubdispatch", Address: address, Secret: map[string][]byte{"token": []byte("t0ken")}}
		r, err := message.Compose(p, failure("x"))
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "unusable provider: ")
		} else {
			got = r.URL.String()
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", address, got, want)
		}
		spec := notificationv1beta3.ProviderSpec{Type: "githubdispatch", Address: address, SecretRef: &meta.LocalObjectReference{Name: "token"}}
		if faults := message.OfProvider(&notificationv1beta3.Provider{Spec: spec}); (len(faults) == 0) != (err == nil) {
			t.Errorf("%s: before anything is sent it is said: %v", address, faults)
		}
	}
	if _, err := message.Compose(message.Provider{Type: "slack", Address: "git@github.com:acme/fleet"}, failure("x")); err == nil {
		t.Error("another type takes an address of SSH")
	}
}
