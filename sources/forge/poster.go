package forge

import (
	"context"
	"net/http"
)

// poster posts statuses over HTTP.
type poster struct {
	*client
	place place
}

var _ Poster = (*poster)(nil)

// Post sets the status on its commit.
func (p *poster) Post(ctx context.Context, status Status) error {
	status, err := status.clean(maxDescription)
	if err != nil {
		return err
	}
	if p.dialect.links != nil && !p.dialect.links(status.TargetURL) {
		status.TargetURL = p.place.page + status.Commit
	}
	got, err := p.ask(ctx, http.MethodPost, p.place.before+status.Commit+p.place.after, p.dialect.body(status))
	if err != nil {
		return err
	}
	return p.outcome(got, func(code int, message string) bool {
		return p.dialect.accepts != nil && p.dialect.accepts(status, code, message)
	})
}
