package message_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/message"
)

var update = flag.Bool("update", false, "write the golden files")

func failure(text string) alerting.Event {
	return alerting.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: "shop", Name: "web", UID: "0a1b"},
		Severity:       alerting.Error, Reason: "BuildFailed", Message: text, Timestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		Metadata:            map[string]string{"revision": "main@sha1:9f2c4d1e", "summary": text, "a/b": text},
		ReportingController: "flotilla",
	}
}

// hostile is what somebody may write to reach people, leave a block, or load an image.
const hostile = "web.yaml: <!channel> <@U123> @everyone @room <users/all> ``` **x** [a](https://evil.example.com) ![b](https://evil.example.com/b.png) <img src=x onerror=y> & \"q\"\nnext"

func providers() map[string]message.Provider {
	token := map[string][]byte{"token": []byte("t0ken")}
	return map[string]message.Provider{
		"generic":                 {Type: "generic", Address: "https://example.com/hook", Secret: map[string][]byte{"headers": []byte("X-Team: shop\n")}},
		"generic-hmac":            {Type: "generic-hmac", Address: "https://example.com/hook", Secret: token},
		"githubdispatch":          {Type: "githubdispatch", Address: "https://github.com/acme/fleet", Secret: token},
		"githubdispatch, own":     {Type: "githubdispatch", Address: "https://github.example.com/acme/fleet.git", Secret: map[string][]byte{"githubAppID": []byte("1")}},
		"slack":                   {Type: "slack", Secret: map[string][]byte{"address": []byte("https://hooks.slack.com/services/T/B/x")}},
		"slack, API":              {Type: "slack", Address: "https://slack.com/api/chat.postMessage", Channel: "ops", Username: "fleet", Secret: token},
		"discord":                 {Type: "discord", Address: "https://discord.com/api/webhooks/1/x/slack"},
		"msteams":                 {Type: "msteams", Address: "https://prod.example.com/workflows/1?sig=x"},
		"matrix":                  {Type: "matrix", Address: "https://matrix.org", Channel: "!room/1:matrix.org", Secret: token},
		"googlechat":              {Type: "googlechat", Address: "https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t"},
		"pagerduty":               {Type: "pagerduty", Channel: "key"},
		"alertmanager":            {Type: "alertmanager", Address: "https://user:pass@am.example.com/api/v2/alerts/", Secret: map[string][]byte{"username": []byte("u"), "password": []byte("p")}},
		"grafana":                 {Type: "grafana", Address: "https://grafana.example.com/api/annotations", Secret: token},
		"pagerduty, own, by name": {Type: "pagerduty", Address: "https://events.eu.pagerduty.com/v2/enqueue", Secret: token},
	}
}

func TestRequests(t *testing.T) {
	success := failure("Applied revision main@sha1:9f2c4d1e")
	success.Severity, success.Reason, success.Metadata = alerting.Info, "ReconciliationSucceeded", map[string]string{"revision": "main@sha1:9f2c4d1e"}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(providers())) {
		for _, e := range []alerting.Event{failure(hostile), success} {
			r, err := message.Compose(providers()[name], e)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			fmt.Fprintf(&out, "## %s: %s\n%s %s\n", name, e.Severity, r.Method, r.URL)
			for _, key := range slices.Sorted(maps.Keys(r.Header)) {
				fmt.Fprintf(&out, "%s: %s\n", key, r.Header[key])
			}
			fmt.Fprintf(&out, "App: %t\n%s\n\n", r.App, indent(t, r.Body))
		}
	}
	golden := filepath.Join("testdata", "requests.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func indent(t *testing.T, body []byte) string {
	t.Helper()
	var out bytes.Buffer
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestProvidersThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		provider message.Provider
		want     string
	}{
		"a type that is not served":         {message.Provider{Type: "opsgenie"}, `unusable provider: type "opsgenie" is not served`},
		"no address":                        {message.Provider{Type: "slack"}, "unusable provider: it has no address: set spec.address, or the key address of its Secret"},
		"an address of another scheme":      {message.Provider{Type: "slack", Address: "file:///s3cret"}, "unusable provider: its address is no URL that begins with https:// or http://"},
		"nothing to sign with":              {message.Provider{Type: "generic-hmac", Address: "https://a"}, "unusable provider: its Secret has no key token, by which messages are signed"},
		"headers that are none":             {message.Provider{Type: "generic", Address: "https://a", Secret: map[string][]byte{"headers": []byte("- s3cret")}}, "unusable provider: the key headers of its Secret is no YAML of names with a text each, 32 at most"},
		"a header with two lines":           {message.Provider{Type: "generic", Address: "https://a", Secret: map[string][]byte{"headers": []byte(`{"A": "s3cret\r\nB: c"}`)}}, "unusable provider: the key headers of its Secret has a name or a value that cannot be sent"},
		"a header that says who gets it":    {message.Provider{Type: "generic", Address: "https://a", Secret: map[string][]byte{"headers": []byte(`{"Host": "s3cret"}`)}}, "unusable provider: the key headers of its Secret has a name or a value that cannot be sent"},
		"Slack's API without a channel":     {message.Provider{Type: "slack", Address: "https://a", Secret: map[string][]byte{"token": []byte("s3cret")}}, "unusable provider: with a token it needs spec.channel"},
		"a room that is no ID":              {message.Provider{Type: "matrix", Address: "https://a", Channel: "../s3cret", Secret: map[string][]byte{"token": []byte("s3cret")}}, "unusable provider: it needs spec.channel, the ID of a room such as !abc:matrix.org"},
		"a repository that is none":         {message.Provider{Type: "githubdispatch", Address: "https://github.com/a/..", Secret: map[string][]byte{"token": []byte("s3cret")}}, "unusable provider: its address must be https://github.com/<owner>/<repository>, or that of your own server"},
		"a dispatch without token":          {message.Provider{Type: "githubdispatch", Address: "https://github.com/a/b"}, "unusable provider: its Secret has no key token"},
		"an incident without a routing key": {message.Provider{Type: "pagerduty"}, "unusable provider: it needs spec.channel, the key of an integration of the Events API v2, or the key token in its Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := message.Compose(tc.provider, failure("x"))
			if !errors.Is(err, message.ErrProvider) || err.Error() != tc.want {
				t.Errorf("got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// TestIncidentsEnd by success alone, and not because something goes on.
func TestIncidentsEnd(t *testing.T) {
	e := failure("1/3")
	e.Severity, e.Reason = alerting.Info, "Progressing"
	if _, err := message.Compose(providers()["pagerduty"], e); !errors.Is(err, message.ErrNothing) {
		t.Errorf("%v, want nothing to say", err)
	}
}

func TestRefused(t *testing.T) {
	for answer, want := range map[string]string{
		"ok": "", `{"ok":true}`: "", "": "", "{": "",
		`{"ok":false,"error":"channel_not_found"}`: "Slack has no channel of that name for it (channel_not_found): correct spec.channel, or invite the app there",
		`{"ok":false,"error":"invalid_auth"}`:      "Slack refuses the token (invalid_auth): put one with the scope chat:write into the Secret",
		`{"ok":false,"error":"<secret>"}`:          "Slack refuses the message",
	} {
		if got := message.Refused("slack", []byte(answer)); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
	if got := message.Refused("generic", []byte(`{"ok":false}`)); got != "" {
		t.Errorf("another type: %q", got)
	}
}

// FuzzCompose: whatever others write, it stays text.
func FuzzCompose(f *testing.F) {
	f.Add(hostile)
	f.Add("````\n```")
	f.Add("\u202e\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		for name, p := range providers() {
			r, err := message.Compose(p, failure(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var body any
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			each(body, func(key, value string) {
				switch {
				case strings.HasPrefix(name, "slack") && strings.ContainsAny(value, "<>"),
					name == "googlechat" && strings.ContainsAny(value, "<>"), name == "grafana" && strings.ContainsAny(value, "<>"):
					t.Errorf("%s: %s is markup: %q", name, key, value)
				case name == "discord" && key == "description" && strings.Count(value, "```") != 2:
					t.Errorf("it leaves its block: %q", value)
				case name == "discord" && key == "value" && strings.Count(value, "`") != 2:
					t.Errorf("it leaves its code: %q", value)
				case name == "msteams" && key == "type" && value == "TextBlock":
					t.Error("a text block is read as Markdown")
				}
			})
		}
	})
}

// each calls visit with each string in a JSON value.
func each(value any, visit func(key, value string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, is := inner.(string); is {
				visit(key, text)
				continue
			}
			each(inner, visit)
		}
	case []any:
		for _, inner := range v {
			if text, is := inner.(string); is {
				visit("", text)
				continue
			}
			each(inner, visit)
		}
	}
}
