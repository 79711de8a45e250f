package listing

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// Leaderless returns why nobody runs the loops of the control plane, so that the state of the fleet is
// out of date; empty if somebody does, or if the user may not read that.
func Leaderless(ctx context.Context, hub client.Reader) (string, error) {
	a, ok := hub.(*attentive)
	if !ok {
		return "", nil
	}
	opened, err := a.began(ctx)
	if err != nil || opened > 0 {
		return "", err // it runs them itself
	}
	lease := &coordinationv1.Lease{}
	switch err := hub.Get(ctx, client.ObjectKey{Namespace: tenure.Namespace, Name: tenure.LeaseName}, lease); {
	case apierrors.IsForbidden(err):
		return "", nil
	case apierrors.IsNotFound(err):
		return "no controllers run here: none have since the control plane was made", nil
	case err != nil:
		return "", fmt.Errorf("read who runs the controllers: %w", err)
	}
	return lapsed(lease, a.clock.now()), nil
}

// began returns the revision at which the server itself began to run the loops. It is 0 for one that
// leaves that to another replica; then the start of the loops is not known.
func (a *attentive) began(ctx context.Context) (int64, error) {
	opened, err := a.opened(ctx)
	if opened == 0 {
		a.clock.mu.Lock()
		defer a.clock.mu.Unlock()
		a.clock.started = time.Time{}
	}
	return opened, err
}

// lapsed returns a text about since when nobody holds a lease; empty if somebody does.
func lapsed(lease *coordinationv1.Lease, now time.Time) string {
	if lease.Spec.RenewTime == nil {
		return "no controllers run here: none have since the control plane was made"
	}
	since := now.Sub(lease.Spec.RenewTime.Time)
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		return fmt.Sprintf("no controllers run here: the last ones stopped %s ago", duration.HumanDuration(max(since, 0)))
	}
	if since <= tenure.LeaseDuration {
		return ""
	}
	return fmt.Sprintf("no controllers run here: the last ones were heard of %s ago", duration.HumanDuration(since))
}

// serverClock is the time on the control plane's machine, from its responses: the user's clock may
// differ.
type serverClock struct {
	mu      sync.Mutex
	last    time.Time
	started time.Time // when the control plane and its loops were started; zero if not known
}

// dated is a transport whose responses set a clock.
type dated struct {
	http.RoundTripper
	clock *serverClock
}

// RoundTrip implements http.RoundTripper.
func (d dated) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return resp, nil
	}
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	d.clock.last = at
	if since, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil && req.URL.Path == clusterv1alpha1.OpenedPath {
		d.clock.started = since
	}
	return resp, nil
}

// Started returns when the control plane and its loops were started, and its current time; known is
// false if it did not publish that. Call Leaderless before.
func Started(hub client.Reader) (at, now time.Time, known bool) {
	a, ok := hub.(*attentive)
	if !ok {
		return time.Time{}, time.Time{}, false
	}
	s := a.clock.start()
	return s.at, s.now, !s.at.IsZero()
}

func (c *serverClock) start() start {
	c.mu.Lock()
	defer c.mu.Unlock()
	return start{at: c.started, now: c.last}
}

// now returns the time of the last response.
func (c *serverClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}
