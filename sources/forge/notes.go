package forge

import (
	"context"
	"errors"
	"fmt"
	"net/mail"

	"k8s.io/utils/clock"

	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/git/note"
)

// notes writes statuses as Git notes.
type notes struct {
	remote *git.Remote
	clock  clock.PassiveClock
	author mail.Address
}

var _ Poster = (*notes)(nil)

const defaultAuthor = "Flotilla <flotilla@localhost>"

func newNotes(p Provider, opts Options) (*notes, error) {
	if _, err := appOf(p); err != nil {
		return nil, err
	}
	cred, err := git.ParseCredentials(p.Address, p.Secret)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	remote, err := git.NewRemote(p.Address, cred, git.Options{Timeout: opts.Timeout, Egress: opts.Egress})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	if opts.Author == "" {
		opts.Author = defaultAuthor
	}
	author, err := mail.ParseAddress(opts.Author)
	if err != nil {
		return nil, fmt.Errorf("%w: author %q is not \"Name <mail>\"", ErrProvider, opts.Author)
	}
	return &notes{remote: remote, clock: opts.Clock, author: *author}, nil
}

// Post sets the line of the status's context in the commit's note.
func (n *notes) Post(ctx context.Context, status Status) error {
	status, err := status.clean(maxNote)
	if err != nil {
		return err
	}
	entry := note.Line{Context: status.Context, State: string(status.State), Description: status.Description}
	if status.TargetURL != "" {
		entry.Description += " " + status.TargetURL
	}
	_, err = n.remote.WriteNote(ctx, status.Commit, entry, git.Signature{Name: n.author.Name, Email: n.author.Address, When: n.clock.Now()})
	switch {
	case errors.Is(err, git.ErrUnauthorized), errors.Is(err, git.ErrHostKey), errors.Is(err, git.ErrTLS):
		return fmt.Errorf("%w: %w; writing notes needs the right to push", ErrUnauthorized, err)
	case errors.Is(err, git.ErrRepositoryNotFound):
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	case errors.Is(err, git.ErrRef):
		return fmt.Errorf("%w: %w", ErrStatus, err)
	}
	return err
}
