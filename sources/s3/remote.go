package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
)

// Options configure access to buckets. Zero fields take the default.
type Options struct {
	// Egress decides which addresses are reached.
	Egress egress.Dialer
	// Clock returns the time of signatures. Default: the system's.
	Clock clock.PassiveClock
	// Limits bound answers.
	Limits Limits
}

// Limits bound answers of a server. Zero fields take the default.
type Limits struct {
	// Page is the size of one page of a list, in bytes. Default 8 MiB.
	Page int64
	// Objects is how many objects of a bucket are looked at. Default 100,000.
	Objects int
}

// WithDefaults returns the options with the defaults in zero fields.
func (o Options) WithDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Limits.Page == 0 {
		o.Limits.Page = 8 << 20
	}
	if o.Limits.Objects == 0 {
		o.Limits.Objects = 100_000
	}
	return o
}

// Place says where a bucket is.
type Place struct {
	// Endpoint is host or host:port.
	Endpoint string
	Bucket   string
	// Region is the one that signatures name; empty for the one that the server names.
	Region string
	// Insecure speaks HTTP.
	Insecure bool
}

// defaultRegion is where a server is that does not say where it is.
const defaultRegion = "us-east-1"

// Access is how a server is spoken to.
type Access struct {
	// Keys sign requests.
	Keys Keys
	// Directory gives out keys; nil for none.
	Directory *Directory
	// Bearer has requests sent with a token in place of a signature, as Google takes them; nil for none. It goes to Google alone.
	Bearer Bearer
	// TLS has a client certificate, and the authorities to trust; nil means the system's.
	TLS *tls.Config
	// Proxy is the proxy of the source's owner; nil for none. It comes before those that Egress has. See egress.ParseProxy.
	Proxy *url.URL
}

// Bearer gives out tokens that have not ended. Errors: ErrUnauthorized where none is given out.
type Bearer interface {
	Token(ctx context.Context) (string, error)
}

// googleHost is the only server that gets a token.
const googleHost = "storage.googleapis.com"

// Remote is one bucket. It may be used from several goroutines.
type Remote struct {
	place  Place
	base   *url.URL
	opts   Options
	client *http.Client
	lender *lender // nil: the keys do not end
	keys   Keys
	bearer Bearer // nil for none

	mu     sync.Mutex
	region string
	// until and status are when, and why, the server wants to be left alone.
	until  time.Time
	status int
}

var (
	buckets   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{1,61}[A-Za-z0-9]$`)
	regions   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	hostnames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// host returns what the endpoint names.
func (p Place) host() string { return strings.TrimSuffix(p.Endpoint, "/") }

// Check returns an error for a place where no bucket can be. Errors: ErrPlace.
func (p Place) Check() error {
	switch {
	case strings.Contains(p.Endpoint, "://"):
		return fmt.Errorf("%w: spec.endpoint is host or host:port, without a scheme: spec.insecure says that it speaks HTTP", ErrPlace)
	case !isHost(p.host()):
		return fmt.Errorf("%w: spec.endpoint is no host or host:port", ErrPlace)
	case !buckets.MatchString(p.Bucket) || strings.Contains(p.Bucket, ".."):
		return fmt.Errorf("%w: spec.bucketName is no name of a bucket", ErrPlace)
	case p.Region != "" && !regions.MatchString(p.Region):
		return fmt.Errorf("%w: spec.region is no name of a region", ErrPlace)
	}
	return nil
}

// CheckGoogle returns an error for a place where no bucket of Google's can be. Errors: ErrPlace.
func (p Place) CheckGoogle() error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.host() != googleHost || p.Insecure {
		return fmt.Errorf("%w: spec.endpoint of a bucket of Google is %s, which gets the token", ErrPlace, googleHost)
	}
	return nil
}

// NewRemote returns the bucket of a place; it opens no connection. Errors: ErrPlace.
func NewRemote(place Place, access Access, opts Options) (*Remote, error) {
	check := place.Check
	if access.Bearer != nil {
		check = place.CheckGoogle
	}
	if err := check(); err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: "https", Host: place.host()}
	if place.Insecure {
		base.Scheme = "http"
	}
	opts = opts.WithDefaults()
	out := &Remote{place: place, base: base, opts: opts, client: newClient(opts.Egress, access.TLS, access.Proxy), keys: access.Keys, bearer: access.Bearer, region: defaultRegion}
	if place.Region != "" {
		out.region = place.Region
	}
	if access.Directory != nil {
		var err error
		if out.lender, err = newLender(*access.Directory, access.Proxy, opts); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// isHost reports whether text is host, or host:port.
func isHost(text string) bool {
	host, port := text, "443"
	if strings.Contains(strings.TrimSuffix(text, "]"), ":") || strings.HasSuffix(text, "]") {
		var err error
		if strings.HasSuffix(text, "]") {
			text += ":443"
		}
		if host, port, err = net.SplitHostPort(text); err != nil {
			return false
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0 && (hostnames.MatchString(host) || net.ParseIP(host) != nil)
}

// newClient returns a client that follows no redirect.
func newClient(dialer egress.Dialer, config *tls.Config, proxy *url.URL) *http.Client {
	return &http.Client{
		Transport:     dialer.Transport(egress.Way{TLS: config, Proxy: proxy}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes what connections there are.
func (r *Remote) Close() {
	r.client.CloseIdleConnections()
	if r.lender != nil {
		r.lender.client.CloseIdleConnections()
	}
}

// Get returns the bytes of an object of a list. Errors: ErrChanged and those of List.
func (r *Remote) Get(ctx context.Context, o Object) ([]byte, error) {
	ask := call{key: o.Key}
	if o.ETag != "" {
		ask.match = `"` + o.ETag + `"`
	}
	content, err := r.read(ctx, ask, o.Size)
	if errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotFound) || err == nil && int64(len(content)) != o.Size {
		err = ErrChanged
	}
	if err != nil {
		return nil, fmt.Errorf("read object %q of bucket %s at %s: %w", o.Key, r.place.Bucket, r.place.Endpoint, err)
	}
	return content, nil
}

// Find returns the bytes of an object by its key alone, with its ETag, unless that is the given one. Errors: ErrSame, and
// those of List.
func (r *Remote) Find(ctx context.Context, key, unless string, limit int64) (content []byte, etag string, err error) {
	ask := call{key: key}
	if unless != "" {
		ask.noneMatch = `"` + unless + `"`
	}
	resp, err := r.do(ctx, ask)
	if err == nil {
		defer resp.Body.Close()
		etag = strings.Trim(resp.Header.Get("ETag"), `"`)
		content, err = drain(resp.Body, limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read object %q of bucket %s at %s: %w", key, r.place.Bucket, r.place.Endpoint, err)
	}
	return content, etag, nil
}

func (r *Remote) read(ctx context.Context, ask call, limit int64) ([]byte, error) {
	resp, err := r.do(ctx, ask)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return drain(resp.Body, limit)
}

// drain reads an answer.
func drain(body io.Reader, limit int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, egress.Fault(err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("the answer has more than %d bytes: %w", limit, ErrTooLarge)
	}
	return content, nil
}
