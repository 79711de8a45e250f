package lfs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/origin"
)

// ErrUnusable means that the content is not to be had as the commit, or the
// server, describes it.
var ErrUnusable = errors.New("unusable Git LFS")

// Source is the repository whose files are fetched.
type Source struct {
	URL         string
	Credentials git.Credentials
	Egress      egress.Dialer
	// Proxy is the tenant's; nil means those of Egress.
	Proxy *url.URL
	// Timeout bounds the fetch of all files together; zero means no bound.
	Timeout time.Duration
}

const (
	// batch is how many files are asked for at a time.
	batch = 100
	// largestAnswer is how large an answer to that may be, in bytes.
	largestAnswer = 1 << 20
	// media is the type of questions and answers.
	media = "application/vnd.git-lfs+json"
)

// Fetch returns the content of the pointers, by their OID. Pointers may repeat.
//
// Errors: ErrUnusable, git.ErrURL, git.ErrUnauthorized, git.ErrRedirect, git.ErrTLS and
// egress.NotAllowedError; anything else is a transport fault and may be retried.
func Fetch(ctx context.Context, from Source, pointers []Pointer) (map[string][]byte, error) {
	base, err := url.Parse(from.URL)
	if err != nil {
		return nil, git.ErrURL
	}
	if base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%w: content is fetched over http and https alone, and spec.url is %s", ErrUnusable, base.Scheme)
	}
	if from.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, from.Timeout)
		defer cancel()
	}
	c := newClient(ctx, base, from)
	defer c.http.CloseIdleConnections()
	pointers = slices.Clone(pointers)
	slices.SortFunc(pointers, func(a, b Pointer) int { return strings.Compare(a.OID, b.OID) })
	pointers = slices.CompactFunc(pointers, func(a, b Pointer) bool { return a.OID == b.OID })
	out := map[string][]byte{}
	for some := range slices.Chunk(pointers, batch) {
		at, err := c.ask(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, pointer := range some {
			if out[pointer.OID], err = c.download(ctx, pointer, at[pointer.OID]); err != nil {
				return nil, fmt.Errorf("file %s: %w", pointer.OID[:8], err)
			}
		}
	}
	return out, nil
}

// question asks where content is.
type question struct {
	Operation string   `json:"operation"`
	Transfers []string `json:"transfers"`
	Objects   []object `json:"objects"`
}

type object struct {
	OID     string `json:"oid"`
	Size    int64  `json:"size"`
	Actions struct {
		Download *action `json:"download,omitempty"`
	} `json:"actions,omitzero"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error,omitempty"`
}

// action is a request that fetches content.
type action struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// mostHeaders is how many headers an action may have.
const mostHeaders = 32

// ask returns where the content of pointers is, by their OID.
func (c *client) ask(ctx context.Context, pointers []Pointer) (map[string]*action, error) {
	q := question{Operation: "download", Transfers: []string{"basic"}}
	for _, p := range pointers {
		q.Objects = append(q.Objects, object{OID: p.OID, Size: p.Size})
	}
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	at := *c.base
	at.User = nil
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), ".git") + ".git/info/lfs/objects/batch"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(text))
	if err != nil {
		return nil, git.ErrURL
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", media)
	body, err := c.do(req)
	var none *unservedError
	if errors.As(err, &none) {
		at.Path = strings.TrimSuffix(at.Path, "/objects/batch")
		none.says = git.MaskURL(at.String()) + ": the server does not serve Git LFS"
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	answer := struct {
		Transfer string   `json:"transfer"`
		Objects  []object `json:"objects"`
	}{}
	if err := json.NewDecoder(io.LimitReader(body, largestAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%w: the server's answer makes no sense", ErrUnusable)
	}
	if answer.Transfer != "" && answer.Transfer != "basic" {
		return nil, fmt.Errorf("%w: the server wants another transfer than basic", ErrUnusable)
	}
	out := map[string]*action{}
	for _, o := range answer.Objects {
		if o.Error == nil && o.Actions.Download != nil {
			out[o.OID] = o.Actions.Download
		}
	}
	return out, nil
}

// download fetches the content of one file.
func (c *client) download(ctx context.Context, p Pointer, from *action) ([]byte, error) {
	if from == nil {
		return nil, fmt.Errorf("%w: the server does not have it: git lfs push --all", ErrUnusable)
	}
	at, err := url.Parse(from.Href)
	switch {
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || len(from.Header) > mostHeaders:
		return nil, fmt.Errorf("%w: the server says of no usable address where it is", ErrUnusable)
	case c.base.Scheme == "https" && at.Scheme == "http":
		return nil, fmt.Errorf("%w: from https to http", git.ErrRedirect)
	}
	at.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: the server says of no usable address where it is", ErrUnusable)
	}
	for key, value := range from.Header {
		req.Header.Set(key, value)
	}
	body, err := c.do(req)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, p.Size+1))
	if err != nil {
		return nil, egress.Fault(err)
	}
	if sum := sha256.Sum256(content); int64(len(content)) != p.Size || hex.EncodeToString(sum[:]) != p.OID {
		return nil, fmt.Errorf("%w: the server sent something else than the commit names", ErrUnusable)
	}
	return content, nil
}

// client speaks to the server of one repository, and to those that it names.
type client struct {
	base *url.URL
	http *http.Client
}

// mostRedirects is how many redirects of a download are followed.
const mostRedirects = 5

func newClient(ctx context.Context, base *url.URL, from Source) *client {
	cred := from.Credentials
	if cred.Username == "" && cred.BearerToken == "" && base.User != nil {
		cred.Username = base.User.Username()
		cred.Password, _ = base.User.Password()
	}
	trust := cred.TLS.Clone()
	if trust != nil {
		trust.Certificates = nil // they are for the repository's own host
	}
	own := from.Egress.Transport(egress.Way{TLS: cred.TLS, Proxy: from.Proxy})
	others := origin.Beyond(ctx, from.Egress, base).Transport(egress.Way{TLS: trust, Proxy: from.Proxy})
	return &client{base: base, http: &http.Client{Transport: transport{base: base, cred: cred, own: own, others: others}, CheckRedirect: redirect}}
}

// redirect allows redirects of downloads, to where they may be themselves. What
// the server gave as headers is for the host that it named.
func redirect(req *http.Request, via []*http.Request) error {
	switch last := via[len(via)-1].URL; {
	case via[0].Method != http.MethodGet:
		return fmt.Errorf("%w: of the question where files are", git.ErrRedirect)
	case len(via) > mostRedirects:
		return fmt.Errorf("%w: more than %d in a row", git.ErrRedirect, mostRedirects)
	case req.URL.Scheme != "http" && req.URL.Scheme != "https":
		return fmt.Errorf("%w: to neither http nor https", git.ErrRedirect)
	case last.Scheme == "https" && req.URL.Scheme == "http":
		return fmt.Errorf("%w: from https to http", git.ErrRedirect)
	case !origin.Same(req.URL, last):
		req.Header = http.Header{}
	}
	req.URL.User = nil
	return nil
}

// transport sends the repository's credentials to its origin alone.
type transport struct {
	base        *url.URL
	cred        git.Credentials
	own, others *egress.Transport
}

// RoundTrip sends the request.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !origin.Same(req.URL, t.base) {
		return t.others.RoundTrip(req)
	}
	if req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		switch {
		case t.cred.BearerToken != "":
			req.Header.Set("Authorization", "Bearer "+t.cred.BearerToken)
		case t.cred.Username != "":
			req.SetBasicAuth(t.cred.Username, t.cred.Password)
		}
	}
	return t.own.RoundTrip(req)
}

// CloseIdleConnections closes those of both; http.Client calls it.
func (t transport) CloseIdleConnections() {
	t.own.CloseIdleConnections()
	t.others.CloseIdleConnections()
}

// do sends the request, and returns what was answered with 200.
func (c *client) do(req *http.Request) (io.ReadCloser, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fault(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	_ = resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%w (HTTP %d) by the Git LFS server: check the credentials in the Secret of spec.secretRef, and what they may read", git.ErrUnauthorized, resp.StatusCode)
	case http.StatusNotFound, http.StatusGone, http.StatusNotAcceptable, http.StatusNotImplemented, http.StatusUnprocessableEntity:
		return nil, &unservedError{says: ErrUnusable.Error() + ": the server has none of this", code: resp.StatusCode}
	default:
		return nil, fmt.Errorf("the Git LFS server answered HTTP %d", resp.StatusCode)
	}
}

// unservedError is an ErrUnusable: a server has nothing at an address.
type unservedError struct {
	says string
	code int // of HTTP
}

// Error says what is not there.
func (e *unservedError) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.says, e.code) }

// Unwrap returns ErrUnusable.
func (e *unservedError) Unwrap() error { return ErrUnusable }

// fault shows nothing of an answer, nor where a redirect leads.
func fault(err error) error {
	var of *url.Error
	if errors.Is(err, git.ErrRedirect) && errors.As(err, &of) {
		return of.Err
	}
	found := egress.Fault(err)
	if errors.Is(found, egress.ErrCertificate) {
		return fmt.Errorf("%w: %w; put the authority in the Secret's ca.crt", git.ErrTLS, found)
	}
	return found
}
