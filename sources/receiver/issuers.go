package receiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	notificationv1 "github.com/fluxcd/notification-controller/api/v1"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/fetching"
)

// lookup is how long it may take to find out where an issuer is; what is not known by then is not held against it.
const lookup = 3 * time.Second

// reach refuses issuers that are where the control plane does not connect to: no token of theirs could ever be verified, and
// who sends one would be told to send it again.
func (r *Reconciler) reach(ctx context.Context, s *state) (loop.Next, error) {
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	for i, provider := range s.object.Spec.OIDCProviders {
		at, err := hostPort(provider.IssuerURL)
		if err != nil {
			return loop.Next{}, loop.Stalled(notificationv1.ValidationFailedReason, fmt.Errorf("spec.oidcProviders[%d].issuerURL: %w", i, err))
		}
		if _, err := r.opts.Egress.Resolve(ctx, at); errors.Is(err, egress.ErrNotAllowed) && !egress.IsAbsent(err) {
			return loop.Next{}, loop.Waiting(notificationv1.ValidationFailedReason, fetching.Awaited, fmt.Errorf("spec.oidcProviders[%d].issuerURL: %w", i, err))
		}
	}
	return loop.Next{}, nil
}

// hostPort returns where an issuer is, as host:port.
func hostPort(issuer string) (string, error) {
	u, err := url.Parse(issuer)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("it is no address: it begins with https://, and a host")
	}
	switch port := u.Port(); {
	case port != "":
		return net.JoinHostPort(u.Hostname(), port), nil
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443"), nil
	default:
		return net.JoinHostPort(u.Hostname(), "80"), nil
	}
}
