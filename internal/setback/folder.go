package setback

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ErrOlder says that what is kept of the hub is from before what the member has seen.
var ErrOlder = errors.New("what is kept here of the control plane is older than what the cluster has seen of it")

// Trust errs while nothing may be started from what is kept of a hub that is away: with
// ErrOlder, or because the member does not say how far it has seen that hub.
func (s *Checker) Trust(ctx context.Context, identity string) error {
	if s.options.Folder == nil {
		return ErrOlder
	}
	mark, err := s.markOf(ctx, &metav1.ObjectMeta{UID: types.UID(identity)})
	if err != nil {
		return err
	}
	text, err := s.options.Folder.Seen()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOlder, err)
	}
	if kept := hubclaim.ParseCopy(text); kept.Older(mark) {
		at := int64(0)
		if kept.Mark != nil {
			at = kept.Mark.Revision
		}
		if mark == nil {
			return fmt.Errorf("%w: it goes to revision %d, and the cluster was let go of since; flotilla register takes it in again", ErrOlder, at)
		}
		return fmt.Errorf("%w: it goes to revision %d, and the cluster has seen %d", ErrOlder, at, mark.Revision)
	}
	return nil
}

// keep has the folder say how far it goes, before the member says so: next is the mark
// that the member is to carry, have the one that it carries. Where that does not
// succeed, the member is ahead of the folder, and nobody starts from it.
func (s *Checker) keep(next, have *hubclaim.Mark) {
	if s.options.Folder == nil || !s.options.Folder.Current() {
		return
	}
	is := hubclaim.Copy{Mark: next, Before: have}
	if err := s.options.Folder.See(is.Encode()); err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = is
}
