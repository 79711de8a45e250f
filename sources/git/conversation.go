package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/sources/git/pack"
	"github.com/flotilla-io/flotilla/sources/git/wire"
)

// connection is a way to a service of the remote.
type connection interface {
	// greet returns what the server says first, and whether it said so in an earlier
	// conversation; it must be called first, and only once.
	greet(ctx context.Context) (greeting *wire.Greeting, remembered bool, err error)
	// exchange sends one request and returns the response, which the caller
	// closes.
	exchange(ctx context.Context, request func(io.Writer) error) (io.ReadCloser, error)
	// forget makes the next connection ask for the greeting.
	forget()
	// close ends the conversation.
	close()
}

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

func (r *Remote) connect(ctx context.Context, service string) (connection, error) {
	if r.url.Scheme == schemeSSH {
		return r.connectSSH(ctx, service)
	}
	return r.connectHTTP(service), nil
}

// conversation is a connection to a server whose greeting is known.
type conversation struct {
	connection
	greeting *wire.Greeting
	limits   Limits
	spool    string            // the folder for transfers
	upon     *io.SectionReader // the pack that transfers are put upon; nil for none
}

// converse opens a connection and passes it to do. Where an earlier greeting was
// relied on and do fails by it, the server is greeted and do is called again.
func (r *Remote) converse(ctx context.Context, service string, do func(*conversation) error) error {
	remembered, err := r.converseOnce(ctx, service, do)
	if err == nil || !remembered || ctx.Err() != nil || isFinal(err) {
		return err
	}
	_, err = r.converseOnce(ctx, service, do)
	return err
}

func (r *Remote) converseOnce(ctx context.Context, service string, do func(*conversation) error) (remembered bool, err error) {
	conn, err := r.connect(ctx, service)
	if err != nil {
		return false, err
	}
	defer conn.close()
	greeting, remembered, err := conn.greet(ctx)
	if err != nil {
		return false, refusal(err)
	}
	err = do(&conversation{connection: conn, greeting: greeting, limits: r.opts.Limits, spool: r.opts.TempDir})
	if err != nil && !isFinal(err) {
		conn.forget()
	}
	return remembered, err
}

// isFinal reports whether a new greeting would make no difference.
func isFinal(err error) bool {
	for _, final := range []error{ErrRef, ErrRefNotFound, ErrTooLarge, ErrUnauthorized, egress.ErrNotAllowed, errNotThisWay} {
		if errors.Is(err, final) {
			return true
		}
	}
	var refused *wire.Refusal
	return errors.As(err, &refused)
}

// list returns the refs whose full names begin with one of the prefixes; before
// version 2 also others. An empty repository has none. What was read before an
// error is returned with it.
func (c *conversation) list(ctx context.Context, limit int64, prefixes ...string) (wire.Refs, error) {
	if !c.greeting.V2 {
		return c.greeting.Refs, nil
	}
	body, err := c.exchange(ctx, func(w io.Writer) error { return c.greeting.EncodeList(w, prefixes...) })
	if err != nil {
		return wire.Refs{}, err
	}
	defer body.Close()
	refs, err := wire.ReadList(body, limit)
	return refs, refusal(err)
}

// hintSize is how much of the list of branches is read for a message, in bytes.
const hintSize = 16 << 10

// branches returns some branches for a message, the first by name; none if they
// cannot be read.
func (c *conversation) branches(ctx context.Context) wire.Refs {
	refs, _ := c.list(ctx, hintSize, branchPrefix) // it is about another error
	return refs
}

// transfer requests objects and receives them.
func (c *conversation) transfer(ctx context.Context, want wire.Wanted) (*pack.Pack, error) {
	var p *pack.Pack
	err := c.receive(ctx, want, func(stream io.Reader) (err error) {
		if c.upon != nil {
			if stream, err = pack.Onto(c.upon, c.upon.Size(), stream); err != nil {
				return err
			}
		}
		p, err = pack.Receive(stream, c.spool, c.limits.pack())
		return err
	})
	return p, err
}

func (l Limits) pack() pack.Limits {
	return pack.Limits{Objects: l.Objects, Object: l.Object, Unpacked: l.Unpacked}
}

// receive passes the stream of the transfer of the wanted objects to take.
func (c *conversation) receive(ctx context.Context, want wire.Wanted, take func(io.Reader) error) error {
	body, err := c.exchange(ctx, func(w io.Writer) error { return c.greeting.EncodeFetch(w, want) })
	if err != nil {
		return err
	}
	defer body.Close()
	bounded := wire.Bound(body, c.limits.Pack, fmt.Errorf("transfer over %d bytes: %w", c.limits.Pack, ErrTooLarge))
	stream, err := c.greeting.ReadFetch(bounded, want)
	if err == nil {
		err = take(stream)
	}
	return bounded.Cause(err)
}

// way is how a commit is requested.
type way func(ctx context.Context, conv *conversation, c Commit) (*Tree, error)

// errNotThisWay means that a commit cannot be requested in this way from this
// server.
var errNotThisWay = errors.New("the server does not serve it in this way")

// byHash requests a commit, and the annotated tag that it was found by, without
// history.
func byHash(ctx context.Context, conv *conversation, c Commit) (*Tree, error) {
	want := []plumbing.Hash{plumbing.NewHash(c.Hash)}
	refs := conv.greeting.Refs
	tip, found := tipOf(refs, want[0])
	switch {
	case conv.greeting.AnyCommit():
	case found:
		want[0] = tip
	default:
		return byHistory(ctx, conv, c)
	}
	tag := plumbing.NewHash(c.Tag) // zero for none
	if !conv.greeting.V2 {
		tag = tagAt(refs, c)
	}
	return conv.tree(ctx, c, tag, wire.Wanted{Objects: want, Shallow: conv.greeting.Shallow()})
}

// without requests a commit without files, and then those that are wanted.
func without(wanted func(file string) bool) way {
	return func(ctx context.Context, conv *conversation, c Commit) (*Tree, error) {
		if !conv.greeting.Filter() || !conv.greeting.Shallow() {
			return nil, errNotThisWay
		}
		commit := []plumbing.Hash{plumbing.NewHash(c.Hash)}
		t, err := conv.tree(ctx, c, plumbing.NewHash(c.Tag), wire.Wanted{Objects: commit, Shallow: true, NoFiles: true})
		if err != nil {
			return nil, err
		}
		if err := conv.addFiles(ctx, t, wanted); err != nil {
			return nil, errors.Join(err, t.Close())
		}
		return t, nil
	}
}

// addFiles transfers the wanted files that a tree lacks.
func (c *conversation) addFiles(ctx context.Context, t *Tree, wanted func(file string) bool) error {
	missing, err := t.missing(ctx, wanted, c.limits.Objects)
	if err != nil || len(missing) == 0 {
		return err
	}
	return c.receive(ctx, wire.Wanted{Objects: missing}, func(stream io.Reader) error {
		return t.pack.Add(stream, c.spool, c.limits.pack())
	})
}

// byHistory requests all the history that should contain the commit.
func byHistory(ctx context.Context, conv *conversation, c Commit) (*Tree, error) {
	prefixes := []string{branchPrefix, tagPrefix}
	if c.Reference != "" {
		prefixes = []string{c.Reference}
	}
	refs, err := conv.list(ctx, conv.limits.Refs, prefixes...)
	if err != nil {
		return nil, err
	}
	if tip, found := tipOf(refs, plumbing.NewHash(c.Hash)); found {
		return conv.tree(ctx, c, tagAt(refs, c), wire.Wanted{Objects: []plumbing.Hash{tip}, Shallow: conv.greeting.Shallow()})
	}
	var want []plumbing.Hash
	if c.Reference == "" {
		want = tips(refs)
		if len(want) == 0 {
			return nil, fmt.Errorf("commit %s: %w; the repository is empty", c.Hash, ErrRefNotFound)
		}
	} else if h, ok := refs.At[c.Reference]; ok {
		want = []plumbing.Hash{h}
	} else {
		return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(c.Reference, branchPrefix), ErrRefNotFound)
	}
	return conv.tree(ctx, c, tagAt(refs, c), wire.Wanted{Objects: want})
}

// tagAt returns the annotated tag that the commit was found by, if it is still
// there.
func tagAt(refs wire.Refs, c Commit) plumbing.Hash {
	if h := refs.At[c.Reference]; c.Tag != "" && h.String() == c.Tag {
		return h
	}
	return plumbing.ZeroHash
}

// tips returns the objects of all branches and tags.
func tips(refs wire.Refs) []plumbing.Hash {
	seen := map[plumbing.Hash]bool{}
	var all []plumbing.Hash
	for name, h := range refs.At {
		if (strings.HasPrefix(name, branchPrefix) || strings.HasPrefix(name, tagPrefix)) && !seen[h] {
			seen[h] = true
			all = append(all, h)
		}
	}
	return all
}

// tipOf returns the hash to request for a commit that a ref points at. A server
// may serve the commit of an annotated tag only with the tag, so for one it is
// the tag's hash.
func tipOf(refs wire.Refs, commit plumbing.Hash) (tip plumbing.Hash, found bool) {
	for name, hash := range refs.At {
		switch {
		case hash == commit:
			return hash, true
		case refs.Peeled[name] == commit:
			tip, found = hash, true
		}
	}
	return tip, found
}

// tree transfers what is wanted, and the tag if it is not zero, and returns the
// commit's tree.
func (c *conversation) tree(ctx context.Context, of Commit, tag plumbing.Hash, want wire.Wanted) (*Tree, error) {
	if !tag.IsZero() && want.Objects[0] != tag {
		want.Objects = append(want.Objects, tag)
	}
	p, err := c.transfer(ctx, want)
	if err != nil {
		return nil, err
	}
	t, err := newTree(p, plumbing.NewHash(of.Hash), tag)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		err = fmt.Errorf("commit %s: %w; it is in no history that the server offers, change spec.ref.commit or name its branch", of.Hash, ErrRefNotFound)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return t, nil
}
