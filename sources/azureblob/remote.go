package azureblob

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/cloudtoken"
	"github.com/flotilla-io/flotilla/sources/s3"
)

// Place says where a container is.
type Place struct {
	// Endpoint is https://ACCOUNT.blob.core.windows.net, or of another cloud of Azure.
	Endpoint, Container string
}

// Remote is one container. It may be used from several goroutines.
type Remote struct {
	place   Place
	base    url.URL
	account string
	access  Access
	bearer  *bearer // nil for none
	client  *http.Client
	clock   clock.PassiveClock
	limits  s3.Limits
}

var (
	endpoints  = regexp.MustCompile(`^https://([a-z0-9]{3,24})\.(blob\.core\.windows\.net|blob\.core\.chinacloudapi\.cn|blob\.core\.usgovcloudapi\.net)/?$`)
	containers = regexp.MustCompile(`^(\$root|\$web|[a-z0-9]([a-z0-9-]{1,61})[a-z0-9])$`)
)

// tokens says who gives out tokens for the storage of a cloud.
var tokens = map[string]string{
	"blob.core.windows.net": cloudtoken.AzurePublic, "blob.core.chinacloudapi.cn": cloudtoken.AzureChina, "blob.core.usgovcloudapi.net": cloudtoken.AzureGovernment,
}

// scope is of tokens for storage, in all clouds.
const scope = "https://storage.azure.com/.default"

// Check returns an error for a place where no container can be. Errors: s3.ErrPlace.
func (p Place) Check() error {
	switch {
	case !endpoints.MatchString(p.Endpoint):
		return fmt.Errorf("%w: spec.endpoint of a container of Azure is https://ACCOUNT.blob.core.windows.net", s3.ErrPlace)
	case !containers.MatchString(p.Container):
		return fmt.Errorf("%w: spec.bucketName is no name of a container", s3.ErrPlace)
	}
	return nil
}

// NewRemote returns the container of a place; it opens no connection. Access to the servers is as that of s3. Errors: s3.ErrPlace,
// s3.ErrCredentials.
func NewRemote(place Place, access Access, way egress.Way, opts s3.Options) (*Remote, error) {
	if err := place.Check(); err != nil {
		return nil, err
	}
	at := endpoints.FindStringSubmatch(place.Endpoint)
	opts = opts.WithDefaults()
	out := &Remote{
		place: place, base: url.URL{Scheme: "https", Host: at[1] + "." + at[2]}, account: at[1], access: access, clock: opts.Clock, limits: opts.Limits,
		client: &http.Client{
			Transport:     opts.Egress.Transport(way),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if access.application != nil {
		login, err := access.application.At(tokens[at[2]], scope)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", s3.ErrCredentials, err)
		}
		out.bearer = &bearer{cloudtoken.NewSource(login, out.client, opts.Clock)}
	}
	return out, nil
}

// Close closes what connections there are.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

// call is what is asked for.
type call struct {
	path  string // after the container, escaped
	query url.Values
	// match and noneMatch are ETags, in quotes or empty.
	match, noneMatch string
}

// do sends a request. Only 200 is no error.
func (r *Remote) do(ctx context.Context, ask call) (*http.Response, error) {
	to := r.base
	to.RawQuery = ask.query.Encode()
	escaped := "/" + r.place.Container + ask.path
	var err error
	if to.Path, err = url.PathUnescape(escaped); err != nil {
		return nil, fmt.Errorf("%w: a name cannot be asked for", s3.ErrMalformed)
	}
	to.RawPath = escaped
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://host/", nil)
	if err != nil {
		return nil, err
	}
	req.URL, req.Host = &to, to.Host
	req.Header.Set("User-Agent", "flotilla")
	req.Header.Set("Accept-Encoding", "identity") // sizes are of what is sent
	if ask.match != "" {
		req.Header.Set("If-Match", ask.match)
	}
	if ask.noneMatch != "" {
		req.Header.Set("If-None-Match", ask.noneMatch)
	}
	if err := r.access.sign(ctx, req, r.account, r.bearer, r.clock.Now()); err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, egress.Fault(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, r.judge(resp)
}

// judge returns the error for an answer that is no object.
func (r *Remote) judge(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusNotModified:
		return s3.ErrSame
	case code == http.StatusPreconditionFailed:
		return s3.ErrChanged
	case code >= 300 && code < 400:
		return fmt.Errorf("%w (HTTP %d)", s3.ErrRedirect, code)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fmt.Errorf("%w (HTTP %d): correct the Secret of spec.secretRef, or have who owns the account let it list the container and read its blobs (Storage Blob Data Reader)", s3.ErrUnauthorized, code)
	case code == http.StatusNotFound:
		return fmt.Errorf("%w (HTTP %d)", s3.ErrNotFound, code)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		seconds, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 12)
		return &s3.BusyError{Status: code, After: time.Duration(seconds) * time.Second} //nolint:gosec // it is of 12 bits
	case code >= http.StatusInternalServerError:
		return fmt.Errorf("the server answered HTTP %d", code)
	default:
		return fmt.Errorf("%w: the server answered HTTP %d", s3.ErrMalformed, code)
	}
}

func (r *Remote) read(ctx context.Context, ask call, limit int64) (content []byte, etag string, err error) {
	resp, err := r.do(ctx, ask)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if content, err = io.ReadAll(io.LimitReader(resp.Body, limit+1)); err != nil {
		return nil, "", egress.Fault(err)
	}
	if int64(len(content)) > limit {
		return nil, "", fmt.Errorf("the answer has more than %d bytes: %w", limit, s3.ErrTooLarge)
	}
	return content, strings.Trim(resp.Header.Get("ETag"), `"`), nil
}

// pathOf returns the path of a blob. Its slashes stay.
func pathOf(key string) string {
	parts := strings.Split(key, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "/" + strings.Join(parts, "/")
}

// Get returns the bytes of an object of a list. Errors: s3.ErrChanged and those of List.
func (r *Remote) Get(ctx context.Context, o s3.Object) ([]byte, error) {
	ask := call{path: pathOf(o.Key)}
	if o.ETag != "" {
		ask.match = `"` + o.ETag + `"`
	}
	content, _, err := r.read(ctx, ask, o.Size)
	if errors.Is(err, s3.ErrTooLarge) || errors.Is(err, s3.ErrNotFound) || err == nil && int64(len(content)) != o.Size {
		err = s3.ErrChanged
	}
	if err != nil {
		return nil, fmt.Errorf("read blob %q of container %s at %s: %w", o.Key, r.place.Container, r.base.Host, err)
	}
	return content, nil
}

// Find returns the bytes of an object by its key alone, with its ETag, unless that is the given one. Errors: s3.ErrSame, and those of
// List.
func (r *Remote) Find(ctx context.Context, key, unless string, limit int64) (content []byte, etag string, err error) {
	ask := call{path: pathOf(key)}
	if unless != "" {
		ask.noneMatch = `"` + unless + `"`
	}
	if content, etag, err = r.read(ctx, ask, limit); err != nil {
		return nil, "", fmt.Errorf("read blob %q of container %s at %s: %w", key, r.place.Container, r.base.Host, err)
	}
	return content, etag, nil
}

// page is one page of a list.
type page struct {
	objects []s3.Object
	next    string
}

// parsePage reads a page. Errors: s3.ErrMalformed.
func parsePage(content []byte) (page, error) {
	var read struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		NextMarker string
		Blobs      []struct {
			Name struct {
				Encoded bool   `xml:"Encoded,attr"`
				Text    string `xml:",chardata"`
			}
			Properties struct {
				Modified string `xml:"Last-Modified"`
				ETag     string `xml:"Etag"`
				Size     int64  `xml:"Content-Length"`
			}
		} `xml:"Blobs>Blob"`
	}
	if xml.NewDecoder(bytes.NewReader(content)).Decode(&read) != nil {
		return page{}, fmt.Errorf("%w: the list of blobs is no XML that is understood", s3.ErrMalformed)
	}
	out := page{next: read.NextMarker}
	for _, blob := range read.Blobs {
		name := blob.Name.Text
		if blob.Name.Encoded {
			var err error
			if name, err = url.PathUnescape(name); err != nil {
				return page{}, fmt.Errorf("%w: a name in the list is not encoded as it says", s3.ErrMalformed)
			}
		}
		if name == "" || blob.Properties.Size < 0 {
			return page{}, fmt.Errorf("%w: the list has a blob without a name, or without a size", s3.ErrMalformed)
		}
		out.objects = append(out.objects, s3.Object{Key: name, ETag: strings.Trim(blob.Properties.ETag, `"`), Size: blob.Properties.Size, Modified: blob.Properties.Modified})
	}
	return out, nil
}

// List returns the objects whose keys begin with a prefix, by their keys. Errors: s3.ErrNotFound, s3.ErrUnauthorized, s3.ErrTooLarge,
// s3.ErrMalformed, s3.BusyError and others.
func (r *Remote) List(ctx context.Context, prefix string) ([]s3.Object, error) {
	all, err := r.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the blobs of container %s at %s: %w", r.place.Container, r.base.Host, err)
	}
	return all, nil
}

func (r *Remote) list(ctx context.Context, prefix string) ([]s3.Object, error) {
	var all []s3.Object
	for marker := ""; ; {
		query := url.Values{"restype": {"container"}, "comp": {"list"}}
		if prefix != "" {
			query.Set("prefix", prefix)
		}
		if marker != "" {
			query.Set("marker", marker)
		}
		content, _, err := r.read(ctx, call{query: query}, r.limits.Page)
		if errors.Is(err, s3.ErrNotFound) {
			return nil, fmt.Errorf("%w: there is no such container: check spec.bucketName and spec.endpoint", s3.ErrNotFound)
		}
		if err != nil {
			return nil, err
		}
		found, err := parsePage(content)
		if err != nil {
			return nil, err
		}
		all = append(all, found.objects...)
		switch {
		case len(all) > r.limits.Objects:
			return nil, fmt.Errorf("more than %d blobs: %w; name those that are meant by spec.prefix", r.limits.Objects, s3.ErrTooLarge)
		case found.next == "":
			return checked(all, prefix)
		case found.next == marker:
			return nil, fmt.Errorf("%w: the list has no end", s3.ErrMalformed)
		}
		marker = found.next
	}
}

// checked returns the objects by their keys, if each is one that was asked for.
func checked(all []s3.Object, prefix string) ([]s3.Object, error) {
	slices.SortFunc(all, func(a, b s3.Object) int { return strings.Compare(a.Key, b.Key) })
	for i, o := range all {
		if !strings.HasPrefix(o.Key, prefix) || i > 0 && all[i-1].Key == o.Key {
			return nil, fmt.Errorf("%w: the list has blobs that were not asked for, or one twice", s3.ErrMalformed)
		}
	}
	return all, nil
}
