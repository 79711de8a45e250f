package s3

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// agent is what servers are told that we are.
const agent = "flotilla"

// call is what is asked for: an object by its key, or the bucket itself.
type call struct {
	key   string
	query url.Values
	// match is the ETag that the object has to have, noneMatch one that it must not have; in quotes, or empty.
	match, noneMatch string
}

// do sends a request, and turns status codes of errors into errors that callers know. Where nobody has named the region, it takes
// the one that the server names.
func (r *Remote) do(ctx context.Context, ask call) (*http.Response, error) {
	if err := r.patience(); err != nil {
		return nil, err
	}
	keys := r.keys
	if r.lender != nil {
		var err error
		if keys, err = r.lender.keys(ctx); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	region := r.region
	r.mu.Unlock()
	resp, err := r.send(ctx, ask, keys, region)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	said := refusalOf(resp)
	if said.region != "" && said.region != region && r.place.Region == "" && !keys.anonymous() && said.status == http.StatusBadRequest {
		r.mu.Lock()
		r.region = said.region
		r.mu.Unlock()
		if resp, err = r.send(ctx, ask, keys, said.region); err != nil || resp.StatusCode == http.StatusOK {
			return resp, err
		}
		said = refusalOf(resp)
	}
	return nil, r.judge(said, keys)
}

// patience returns an error while the server wants to be left alone.
func (r *Remote) patience() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.until.Sub(r.opts.Clock.Now()); left > 0 {
		return &BusyError{Status: r.status, After: left.Round(time.Second)}
	}
	return nil
}

func (r *Remote) send(ctx context.Context, ask call, keys Keys, region string) (*http.Response, error) {
	to := *r.base
	to.Path = "/" + r.place.Bucket + "/" + ask.key
	to.RawPath = encode(to.Path, "/")
	to.RawQuery = encodeQuery(ask.query)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/", nil)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = &to, to.Host
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept-Encoding", "identity") // sizes are of what is sent
	if ask.match != "" {
		req.Header.Set("If-Match", ask.match)
	}
	if ask.noneMatch != "" {
		req.Header.Set("If-None-Match", ask.noneMatch)
	}
	switch {
	case r.bearer != nil:
		token, err := r.bearer.Token(ctx)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
	case !keys.anonymous():
		sign(req, keys, region, r.opts.Clock.Now())
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fault(err)
	}
	return resp, nil
}

// refusal is what an answer says that is no object.
type refusal struct {
	status int
	// code is S3's; only those that this package knows are used.
	code   string
	region string
	after  string
}

// unknownKey is S3's code for an access key that the server does not know.
const unknownKey = "InvalidAccessKeyId"

// maxRefusal bounds what is read of such an answer, in bytes.
const maxRefusal = 64 << 10

// refusalOf reads an answer, and closes it.
func refusalOf(resp *http.Response) refusal {
	defer resp.Body.Close()
	out := refusal{status: resp.StatusCode, region: resp.Header.Get("X-Amz-Bucket-Region"), after: resp.Header.Get("Retry-After")}
	var said struct {
		XMLName      xml.Name `xml:"Error"`
		Code, Region string
	}
	if xml.NewDecoder(io.LimitReader(resp.Body, maxRefusal)).Decode(&said) == nil {
		out.code = said.Code
		if out.region == "" {
			out.region = said.Region
		}
	}
	if !regions.MatchString(out.region) {
		out.region = ""
	}
	return out
}

// judge returns the error for an answer that is no object.
func (r *Remote) judge(said refusal, keys Keys) error {
	switch code := said.status; {
	case code == http.StatusNotModified:
		return ErrSame
	case code == http.StatusPreconditionFailed:
		return ErrChanged
	case code >= 300 && code < 400:
		return fmt.Errorf("%w (HTTP %d): the bucket is served elsewhere: name the endpoint of its region in spec.endpoint, and the region in spec.region", ErrRedirect, code)
	case said.code == "AuthorizationHeaderMalformed":
		return fmt.Errorf("%w (HTTP %d): the server is of another region: correct spec.region", ErrUnauthorized, code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden, said.code == unknownKey: // which some say with 404
		if r.bearer != nil {
			return fmt.Errorf("%w (HTTP %d): let the service account of the Secret list the bucket and read its objects (roles/storage.objectViewer)", ErrUnauthorized, code)
		}
		return denied(said, keys)
	case code == http.StatusNotFound:
		return fmt.Errorf("%w (HTTP %d)", ErrNotFound, code)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		r.mu.Lock()
		defer r.mu.Unlock()
		now := r.opts.Clock.Now()
		busy := &BusyError{Status: code, After: pause(said.after, now)}
		r.until, r.status = now.Add(busy.After), code
		return busy
	case code >= http.StatusInternalServerError && code != http.StatusNotImplemented:
		return fmt.Errorf("the server answered HTTP %d", code)
	default:
		return fmt.Errorf("%w: the server answered HTTP %d: is it a server of S3, and the right port?", ErrMalformed, code)
	}
}

// denied returns the error for keys that are refused.
func denied(said refusal, keys Keys) error {
	hint := "have who owns the bucket allow the keys to list it and to read its objects (s3:ListBucket, s3:GetObject)"
	switch {
	case keys.anonymous():
		hint = "the server wants keys: name a Secret with accesskey and secretkey in spec.secretRef"
	case said.code == unknownKey:
		hint = "the server does not know the access key: correct accesskey in the Secret"
	case said.code == "SignatureDoesNotMatch":
		hint = "the secret key is not that of the access key: correct secretkey in the Secret"
	case said.code == "RequestTimeTooSkewed":
		hint = "the clocks of the server and of the control plane differ: correct the one that is wrong"
	}
	return fmt.Errorf("%w (HTTP %d): %s", ErrUnauthorized, said.status, hint)
}

// fault says what went wrong with a request, and nothing of the answer.
func fault(err error) error {
	found := egress.Fault(err)
	var alert tls.AlertError
	switch {
	case errors.Is(found, egress.ErrCertificate):
		return fmt.Errorf("%w: %w; put the authority in ca.crt of the Secret of spec.certSecretRef", ErrTLS, found)
	case errors.Is(found, http.ErrSchemeMismatch):
		return fmt.Errorf("%w: the server does not speak it: spec.insecure is for such", ErrTLS)
	case errors.As(found, &alert):
		return fmt.Errorf("%w: %w", ErrTLS, alert)
	}
	return found
}
