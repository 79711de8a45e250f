package oci

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Request is one for which Send is there.
type Request struct {
	Method string
	// At is where it goes: what Remote.Path returns, or a registry has named.
	At *url.URL
	// Body returns the content from its beginning, as it may have to be sent again; nil for none. Size and ContentType are its.
	Body        func() io.Reader
	Size        int64
	ContentType string
}

func (q Request) prepare(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, q.At.String(), nil)
	if err != nil || q.Body == nil {
		return req, err
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(q.Body()), nil }
	req.Body, err = req.GetBody()
	req.ContentLength = q.Size
	req.Header.Set("Content-Type", q.ContentType)
	return req, err
}

// writes reports whether a request writes something.
func writes(req *http.Request) bool {
	return req.Method != http.MethodGet && req.Method != http.MethodHead
}

// Send sends a request of which only the headers of the answer count, as one that writes. It says nothing of what the registry has against
// some content: only that it is not taken. Errors: those of Remote.Resolve, ErrStatus, and FailedError.
func Send(ctx context.Context, to *Remote, q Request) (http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, to.opts.Timeout)
	defer cancel()
	if to.registry.base.Scheme == "https" && q.At.Scheme != "https" {
		return nil, fmt.Errorf("%w: from https to %s", ErrRedirect, q.At.Scheme)
	}
	resp, err := to.registry.exchange(ctx, q)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return resp.Header, nil
}

// Raw returns a manifest or an index of a repository as it is, by its digest. Errors: those of Remote.Manifest.
func Raw(ctx context.Context, from *Remote, digest string) (mediaType string, content []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, from.opts.Timeout)
	defer cancel()
	if mediaType, content, err = from.verified(ctx, digest); err != nil {
		return "", nil, from.about("read the manifest "+digest, err)
	}
	return mediaType, content, nil
}
