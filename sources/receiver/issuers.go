package receiver

import (
	"context"
	"errors"
	"fmt"
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
		at, err := url.Parse(provider.IssuerURL)
		if err != nil || at.Hostname() == "" {
			return loop.Next{}, loop.Stalled(notificationv1.ValidationFailedReason, fmt.Errorf("spec.oidcProviders[%d].issuerURL is no address: it begins with https://, and a host", i))
		}
		if _, err := r.opts.Egress.Resolve(ctx, egress.HostPort(at)); errors.Is(err, egress.ErrNotAllowed) && !egress.IsAbsent(err) {
			return loop.Next{}, loop.Waiting(notificationv1.ValidationFailedReason, fetching.Awaited, fmt.Errorf("spec.oidcProviders[%d].issuerURL: %w", i, err))
		}
	}
	return loop.Next{}, nil
}
