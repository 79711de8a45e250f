package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/policies/alerting"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

var (
	// ErrProvider means that the type, address, channel or Secret of a Provider cannot be used.
	ErrProvider = errors.New("unusable provider")
	// ErrNothing means that a type has nothing to say of an Event.
	ErrNothing = errors.New("nothing to say of it")
)

// Provider is where messages go.
type Provider struct {
	Type, Address, Channel, Username string
	// Secret is the data of its Secret. Its address comes before that of the spec.
	Secret map[string][]byte
}

// String returns a fixed text: addresses are secrets, too.
func (Provider) String() string { return "(provider)" }

// GoString returns a fixed text.
func (Provider) GoString() string { return "(provider)" }

// Request is what to send.
type Request struct {
	// Method is POST or PUT, and URL where it goes.
	Method string
	URL    *url.URL
	Header map[string]string
	// Body is JSON.
	Body []byte
	// App says that a token of the GitHub App in the Secret goes with it.
	App bool
}

// String returns a fixed text.
func (Request) String() string { return "(request)" }

// Bounds of texts, in bytes: the message itself, and what stands beside it.
const (
	mostMessage = 3 << 10
	mostFact    = 512
)

// Compose returns the request for an Event. Errors: ErrProvider, which names keys and no values; ErrNothing.
func Compose(p Provider, e alerting.Event) (Request, error) {
	compose := composers[p.Type]
	if compose == nil {
		return Request{}, fmt.Errorf("%w: type %q is not served", ErrProvider, p.Type)
	}
	e.Message = excerpt.Message(e.Message, mostMessage)
	address, err := p.address()
	if err != nil {
		return Request{}, err
	}
	r := Request{Method: "POST", URL: address, Header: map[string]string{}}
	body, err := compose(p, e, &r)
	if err != nil {
		return Request{}, err
	}
	r.Header["Content-Type"] = "application/json"
	if raw, ready := body.(json.RawMessage); ready {
		r.Body = raw
		return r, nil
	}
	if r.Body, err = json.Marshal(body); err != nil {
		return Request{}, fmt.Errorf("write the message: %w", err)
	}
	return r, nil
}

// composers return the body for a type, and complete the request.
var composers = map[string]func(p Provider, e alerting.Event, r *Request) (any, error){
	notificationv1beta3.GenericProvider:        generic,
	notificationv1beta3.GenericHMACProvider:    signed,
	notificationv1beta3.GitHubDispatchProvider: dispatch,
	notificationv1beta3.SlackProvider:          slack,
	notificationv1beta3.DiscordProvider:        discord,
	notificationv1beta3.MSTeamsProvider:        teams,
	notificationv1beta3.Matrix:                 matrix,
	notificationv1beta3.GoogleChatProvider:     googleChat,
	notificationv1beta3.PagerDutyProvider:      pagerDuty,
	notificationv1beta3.AlertManagerProvider:   alertmanager,
	notificationv1beta3.GrafanaProvider:        grafana,
}

// defaults are the addresses of types that have one of their own.
var defaults = map[string]string{notificationv1beta3.PagerDutyProvider: "https://events.pagerduty.com"}

// address returns where the requests of a Provider go.
func (p Provider) address() (*url.URL, error) {
	text := strings.TrimSpace(string(p.Secret["address"]))
	if text == "" {
		text = p.Address
	}
	if text == "" {
		text = defaults[p.Type]
	}
	if text == "" {
		return nil, fmt.Errorf("%w: it has no address: set spec.address, or the key address of its Secret", ErrProvider)
	}
	if p.Type == notificationv1beta3.GitHubDispatchProvider {
		text = overHTTPS(text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: its address is no URL that begins with https:// or http://", ErrProvider)
	}
	u.User, u.Fragment = nil, ""
	return u, nil
}

// token returns the key token, or an ErrProvider.
func (p Provider) token() (string, error) {
	if token := p.key("token"); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("%w: its Secret has no key token", ErrProvider)
}

func (p Provider) key(name string) string { return strings.TrimSpace(string(p.Secret[name])) }

// authorize adds the credentials of the Secret, if it has any: a token, or username with password.
func (p Provider) authorize(r *Request) {
	switch token := p.key("token"); {
	case token != "":
		r.Header["Authorization"] = "Bearer " + token
	case len(p.Secret["username"]) > 0:
		r.Header["Authorization"] = "Basic " + basic(string(p.Secret["username"]), string(p.Secret["password"]))
	}
}

// mostHeaders bounds the headers that a Secret adds.
const mostHeaders = 32

// headers adds those of the Secret's key headers, which is YAML.
func (p Provider) headers(r *Request) error {
	headers := map[string]string{}
	if err := yaml.UnmarshalStrict(p.Secret["headers"], &headers); err != nil || len(headers) > mostHeaders {
		return fmt.Errorf("%w: the key headers of its Secret is no YAML of names with a text each, %d at most", ErrProvider, mostHeaders)
	}
	for name, value := range headers {
		if !validHeader(name, value) {
			return fmt.Errorf("%w: the key headers of its Secret has a name or a value that cannot be sent", ErrProvider)
		}
		r.Header[name] = value
	}
	return nil
}
