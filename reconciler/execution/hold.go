package execution

import (
	"context"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/skiperrors"
)

// gate is closed while there is a hold: the hub was restored from an older backup, for example, and
// its Works are older than what runs.
type gate struct {
	// held reports whether nothing may be changed in the cluster.
	held func() bool
}

// check returns an error for every change of the member while there is a hold. Watches show only
// managed objects, so it reads from the member whether another object is in the way of one that would be created.
func (g gate) check(ctx context.Context, s *state, o *object, to target) error {
	if !g.held() {
		return nil
	}
	p := &skiperrors.Held{Verb: skiperrors.Change, Title: o.Title()}
	switch {
	case to.presence == members.Absent || to.act == restore:
		p.Verb = skiperrors.Make
		live, err := s.member.Get(ctx, o.GVK, o.Key)
		desired, fault := o.Object(s.work)
		if err != nil || fault != nil {
			return p // the object does not exist, or that is not known
		}
		if !s.owner().MayTake(desired, live, o.record.Desired != "") {
			return taken(s, o, live)
		}
		p.Verb = skiperrors.Change
	case to.act == correct:
		p.Verb = skiperrors.SetBack
	}
	return p
}
