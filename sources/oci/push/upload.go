package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/oci"
)

// blob has the repository have some content, and returns how many bytes were sent for that: none if it had it.
func (r Repository) blob(ctx context.Context, content []byte) (int64, error) {
	digest := describe("", content).Digest
	there, err := r.has(ctx, digest)
	if err != nil || there {
		return 0, err
	}
	// Where an upload goes on is told once, and what was told is of no use after it went wrong.
	err = r.persist(ctx, func() error { return r.upload(ctx, digest, content) })
	return int64(len(content)), err
}

// has reports whether the repository has content of a digest. A registry that does not answer the question has not.
func (r Repository) has(ctx context.Context, digest string) (bool, error) {
	err := r.persist(ctx, func() error {
		_, err := oci.Send(ctx, r.remote, oci.Request{Method: http.MethodHead, At: r.remote.Path("blobs", digest)})
		return err
	})
	if errors.Is(err, oci.ErrNotFound) || errors.Is(err, oci.ErrStatus) {
		return false, nil
	}
	return err == nil, err
}

// upload sends content at once.
func (r Repository) upload(ctx context.Context, digest string, content []byte) error {
	begin := r.remote.Path("blobs", "uploads/")
	told, err := oci.Send(ctx, r.remote, oci.Request{Method: http.MethodPost, At: begin})
	if err != nil {
		return err
	}
	at, err := begin.Parse(told.Get("Location"))
	if err != nil || told.Get("Location") == "" || at.User != nil {
		return fmt.Errorf("%w: the registry does not say where the content goes", oci.ErrMalformed)
	}
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: the registry does not say where the content goes", oci.ErrMalformed)
	}
	query.Set("digest", digest)
	at.RawQuery = query.Encode()
	_, err = oci.Send(ctx, r.remote, oci.Request{
		Method: http.MethodPut, At: at, ContentType: "application/octet-stream", Size: int64(len(content)),
		Body: func() io.Reader { return &counted{bytes.NewReader(content), r.opts.Progress} },
	})
	return err
}

// counted tells how much of some content was read.
type counted struct {
	content *bytes.Reader
	tell    func(sent, all int64)
}

// Read reads, and tells it.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.content.Read(p)
	if c.tell != nil {
		c.tell(c.content.Size()-int64(c.content.Len()), c.content.Size())
	}
	return n, err
}

// send sends a request, more than once if it has to.
func (r Repository) send(ctx context.Context, q oci.Request) (header http.Header, err error) {
	err = r.persist(ctx, func() (err error) {
		header, err = oci.Send(ctx, r.remote, q)
		return err
	})
	return header, err
}

// firstPause is how long a registry is left alone that does not say how long it wants to be, which doubles each time.
const firstPause = time.Second

// persist tries something again while the registry is busy, fails, or ends the connection.
func (r Repository) persist(ctx context.Context, try func() error) error {
	pause := firstPause
	for left := r.opts.Tries - 1; ; left-- {
		err := try()
		if left <= 0 || !passes(err) {
			return err
		}
		var busy *oci.BusyError
		wait := pause
		if errors.As(err, &busy) {
			wait = max(wait, busy.After)
		}
		if ends, bounded := ctx.Deadline(); bounded && r.opts.Clock.Now().Add(wait).After(ends) {
			return err // it would be too late
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.opts.Clock.After(wait):
		}
		pause *= 2
	}
}

// passes reports whether an error may be no more the next time.
func passes(err error) bool {
	var busy *oci.BusyError
	var failed *oci.FailedError
	return errors.As(err, &busy) || errors.As(err, &failed) || errors.Is(err, egress.ErrEnded) || errors.Is(err, syscall.ECONNRESET)
}
