package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/flotilla-io/flotilla/policies/alerting"
)

// componentHeader says who sends an Event, as with Flux.
const componentHeader = "Gotk-Component"

// generic is Flux's Event, as it is.
func generic(p Provider, e alerting.Event, r *Request) (any, error) {
	if err := p.headers(r); err != nil {
		return nil, err
	}
	r.Header[componentHeader] = e.ReportingController
	return e, nil
}

// signed is generic with a signature of the body.
func signed(p Provider, e alerting.Event, r *Request) (any, error) {
	if _, err := generic(p, e, r); err != nil {
		return nil, err
	}
	if len(p.Secret["token"]) == 0 {
		return nil, fmt.Errorf("%w: its Secret has no key token, by which messages are signed", ErrProvider)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	mac := hmac.New(sha256.New, p.Secret["token"])
	_, _ = mac.Write(body)
	r.Header["X-Signature"] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	return json.RawMessage(body), nil
}

// App reports whether the Secret has keys of a GitHub App, and no token.
func (p Provider) App() bool { return len(p.Secret["token"]) == 0 && len(p.Secret["githubAppID"]) > 0 }

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// framing are headers that say where a message ends and who gets it: they are not for a tenant.
var framing = []string{"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "proxy-authorization", "proxy-connection", "keep-alive"}

func validHeader(name, value string) bool {
	return httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value) && !slices.Contains(framing, strings.ToLower(name))
}
