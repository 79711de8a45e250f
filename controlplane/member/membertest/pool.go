package membertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/flotilla-io/flotilla/controlplane/etcd/storetest"
	"github.com/flotilla-io/flotilla/controlplane/member"
)

// Pool lends members that are as new to the tests of a package; see storetest. A test that stops its member has one
// of its own.
type Pool struct{ pool storetest.Pool[lent] }

// lent is a member with the folder that it is in.
type lent struct {
	*Member
	folder string
}

// Folder is where the member's data is.
func (l lent) Folder() string { return l.folder }

// Stop ends the member and removes its folder.
func (l lent) Stop() error { return errors.Join(l.stop(), os.RemoveAll(l.folder)) }

// Stop ends all members.
func (p *Pool) Stop() error { return p.pool.Stop() }

// Member returns a member that no other test has until this one ends. Its folder is its own.
func (p *Pool) Member(t testing.TB, opts member.Options) *Member {
	t.Helper()
	sort := fmt.Sprint(opts.Name, opts.Nodes, opts.Node)
	return p.pool.Lend(t, sort, func(ctx context.Context) (lent, error) {
		dir, err := os.MkdirTemp("", "member-")
		if err != nil {
			return lent{}, err
		}
		opts.DataDir = dir
		m, err := start(ctx, opts)
		if err != nil {
			return lent{}, errors.Join(err, os.RemoveAll(dir))
		}
		return lent{Member: m, folder: dir}, nil
	}).Member
}
