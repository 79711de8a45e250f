package message

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
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

// dispatch starts workflows of a repository on GitHub.
func dispatch(p Provider, e alerting.Event, r *Request) (any, error) {
	parts := strings.Split(strings.Trim(strings.TrimSuffix(strings.Trim(r.URL.Path, "/"), ".git"), "/"), "/")
	if len(parts) != 2 || slices.ContainsFunc(parts, func(part string) bool { return part == "" || strings.Trim(part, ".") == "" }) {
		return nil, fmt.Errorf("%w: its address must be https://github.com/<owner>/<repository>, or that of your own server", ErrProvider)
	}
	api := &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: "/api/v3"}
	if strings.EqualFold(r.URL.Host, "github.com") {
		api = &url.URL{Scheme: "https", Host: "api.github.com"}
	}
	r.URL = api.JoinPath("repos", url.PathEscape(parts[0]), url.PathEscape(parts[1]), "dispatches")
	r.Header["Accept"] = "application/vnd.github+json"
	if r.App = p.App(); !r.App {
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		r.Header["Authorization"] = "Bearer " + token
	}
	const mostType = 100 // bytes, GitHub's limit
	kind := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name + "." + e.InvolvedObject.Namespace
	return map[string]any{"event_type": kind[:min(len(kind), mostType)], "client_payload": e}, nil
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
